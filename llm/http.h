// One streaming HTTPS POST with separate limits, cancellable in every state, over cpp-httplib (http.cc is its only
// user). Blocks its thread; thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace llm {

struct HttpLimits {
  std::chrono::milliseconds connect{15'000};      // name look-up, TCP and TLS together
  std::chrono::milliseconds first_byte{300'000};  // request sent to response headers; local models load for long
  std::chrono::milliseconds idle{120'000};        // between any two bytes of the body
  std::chrono::milliseconds no_content{300'000};  // heartbeats but nothing of the answer; the reader calls progress()
  std::size_t error_body{64 * 1024};              // kept of a non-200 body
};

struct HttpRequest {
  std::string url;  // http:// or https://, with path
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  HttpLimits limits;
};

struct HttpResponse {
  int status = 0;
  std::multimap<std::string, std::string> headers;  // names lower case
  std::string error_body;                           // of a status that is not 2xx
};

struct HttpSink {
  std::function<void(const HttpResponse&)> on_headers;  // may be empty; body not yet there
  // Bytes of a 2xx body. Return false to stop reading (the answer is complete): that is success.
  // `progress` is set to true by the callee when the bytes carried content of the answer.
  std::function<bool(std::string_view bytes, bool& progress)> on_body;
};

// Redirects are followed only on 307/308 to the same host; anything else is reported as it is.
// Errors: cancelled, timed_out (message says which limit), transport, cut_stream (body ended before its length or chunk
// end).
using HttpPost = std::function<base::Result<HttpResponse>(const HttpRequest&, const HttpSink&, std::stop_token)>;

// TLS verification is always on: system CA store, or SSL_CERT_FILE / SSL_CERT_DIR. HTTPS_PROXY / HTTP_PROXY / NO_PROXY
// (and lower case) are honoured; loopback bypasses a proxy.
struct HttpEnvironment {
  std::string https_proxy, http_proxy, no_proxy, cert_file, cert_dir;
};
HttpEnvironment read_http_environment();
HttpPost make_http_post(HttpEnvironment environment);

}  // namespace llm

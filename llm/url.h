// URLs of model servers and proxies, as far as this product accepts them. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace llm {

struct Url {
  std::string scheme;  // "http" or "https"
  std::string user;    // percent-decoded; with `password` only in proxies
  std::string password;
  std::string host;  // lower case, an IPv6 address without its brackets
  int port = 0;
  std::string path;   // starts with '/', or empty
  std::string query;  // with its '?', or empty

  bool tls() const { return scheme == "https"; }
  std::string target() const { return (path.empty() ? "/" : path) + query; }
  std::string host_port() const;  // "[::1]:8080"; the port only when it is not the scheme's own
  std::string to_string() const;  // without user and password
};

// invalid_argument says what is wrong with it. Fragments, spaces and control characters are refused.
base::Result<Url> parse_url(std::string_view text);

bool is_loopback(std::string_view host);  // localhost, *.localhost, 127.0.0.0/8, ::1
bool is_ip_address(const std::string& host);

// The chat completions endpoint for a base URL with or without /v1, a trailing slash, or the endpoint itself. A URL
// without any path gets /v1 (every server that answers at the root answers there too); a query (Azure's api-version) is
// kept.
base::Result<Url> chat_completions_url(std::string_view base_url);

}  // namespace llm

// One request of a test, and what came of it.
#pragma once

#include <chrono>
#include <string>

#include "llm/http.h"

namespace test {

struct Call {
  std::string body;
  int heads = 0;
  std::chrono::milliseconds took{0};
  base::Result<llm::HttpResponse> response = llm::HttpResponse{};
  std::string message() const { return response ? "" : response.error().message; }
};

inline llm::HttpRequest request_to(const std::string& url) {
  llm::HttpRequest request;
  request.url = url;
  request.body = R"({"model":"m"})";
  request.headers = {{"Content-Type", "application/json"}, {"Authorization", "Bearer sk-secret"}};
  return request;
}

// `content`: whether bytes count as progress. `until`: the body is complete once it holds this.
inline Call call(const llm::HttpPost& post, const llm::HttpRequest& request, std::stop_token stop = {},
                 bool content = true, const std::string& until = {}) {
  Call out;
  llm::HttpSink sink;
  sink.on_headers = [&](const llm::HttpResponse&) { ++out.heads; };
  sink.on_body = [&](std::string_view bytes, bool& progress) {
    out.body += bytes;
    progress = content;
    return until.empty() || out.body.find(until) == std::string::npos;
  };
  const auto start = std::chrono::steady_clock::now();
  out.response = post(request, sink, std::move(stop));
  out.took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
  return out;
}

}  // namespace test

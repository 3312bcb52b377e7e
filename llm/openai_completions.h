// The chat completions protocol ("openai-completions"): what is sent, and how the stream that comes back is read. Over
// any HttpPost: the network's, or a recording's. Thread-safe; remembers only whether the server refused an optional
// parameter. The key lives here only and never appears in an error.
#pragma once

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "llm/adapter.h"
#include "llm/http.h"

namespace llm {

struct OpenAiOptions {
  std::string url;  // the endpoint itself
  std::string key;  // "" = no Authorization header
  std::vector<std::pair<std::string, std::string>> headers;
  HttpLimits limits;
  // Member that carries the reasoning of an assistant message with tool calls back ("reasoning_content" for DeepSeek,
  // which refuses the request without it); "" = never sent back.
  std::string reasoning_field;
};

class OpenAiCompletions : public LlmAdapter {
 public:
  OpenAiCompletions(OpenAiOptions options, HttpPost post);
  std::string encode(const Message& message) const override;
  std::string head(const RequestHeader& header) const override;
  tl::expected<Completion, ModelError> complete(const RequestHeader& header, const std::vector<WireMessage>& messages,
                                                const StreamSink& sink, std::stop_token stop) override;

 private:
  static std::string make_head(const RequestHeader& header, bool ask_usage);
  tl::expected<Completion, ModelError> request(std::string body, const StreamSink& sink, std::stop_token stop);
  void redact(ModelError& error) const;

  const OpenAiOptions options_;
  const HttpPost post_;
  std::atomic<bool> usage_refused_{false};  // the server answered 400 to stream_options
};

}  // namespace llm

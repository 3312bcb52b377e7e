// One wire protocol over one route. Stateless between requests but for connections; thread-safe: many sessions share
// it. The key lives in the adapter only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "llm/message.h"

namespace llm {

// Everything of a request that is not the conversation. Logged as request/header when it changes.
struct RequestHeader {
  std::string model;
  std::string system;
  std::vector<ToolSpec> tools;
  std::string params;  // JSON object of extra members ("{}" = none), e.g. max_tokens, temperature
};

// A message already serialised for this wire; serialised once and kept by the session.
using WireMessage = std::shared_ptr<const std::string>;

struct StreamSink {
  std::function<void(std::string_view)> on_text;
  std::function<void(std::string_view)> on_reasoning;
};

// A failed request: error plus what a retry needs to know.
struct ModelError {
  base::Error error;
  bool retryable = false;
  std::int64_t retry_after_ms = -1;  // -1: the server said nothing
  bool anything_streamed = false;    // text had already been shown
  Message partial;                   // what was shown before a stop or a cut
};

class LlmAdapter {
 public:
  virtual ~LlmAdapter() = default;
  // Wire form of one message. The whole body is head(header) + messages joined by "," + "]}"; `messages` is the last
  // member, so the next body without its closing "]}" starts with this one without its own.
  // Empty: the message has nothing this wire may carry (an assistant with neither text nor calls), and is left out.
  virtual std::string encode(const Message& message) const = 0;
  virtual std::string head(
      const RequestHeader& header) const = 0;  // up to and including "messages":[ and the system message
  // Blocks until the answer is complete. Stopping ends it within 100 ms in every state, with code cancelled.
  virtual tl::expected<Completion, ModelError> complete(const RequestHeader& header,
                                                        const std::vector<WireMessage>& messages,
                                                        const StreamSink& sink, std::stop_token stop) = 0;
};

std::string request_body(const LlmAdapter& adapter, const RequestHeader& header,
                         const std::vector<WireMessage>& messages);
// The same from a head already made; for adapters.
std::string join_body(std::string head, const std::vector<WireMessage>& messages);

// A composed model route.
struct Route {
  std::string id;        // entry id in cordis.yml
  std::string protocol;  // "openai-completions"
  std::string model;
  std::vector<std::string> models;
  std::int64_t context_window = 0;  // 0: unknown
  std::string params = "{}";
  bool chosen_only = false;                // used only when named (recorded)
  bool ready = false;                      // its key is there
  std::string missing;                     // what to set when it is not ready
  std::vector<std::string> key_variables;  // environment names that hold its key; never reach a child
  std::shared_ptr<LlmAdapter> adapter;
};

}  // namespace llm

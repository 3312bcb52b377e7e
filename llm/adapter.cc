#include "llm/adapter.h"

namespace llm {

std::string request_body(const LlmAdapter& adapter, const RequestHeader& header,
                         const std::vector<WireMessage>& messages) {
  return join_body(adapter.head(header), messages);
}

std::string join_body(std::string head, const std::vector<WireMessage>& messages) {
  std::size_t size = head.size() + 2;
  for (const WireMessage& message : messages) size += message->size() + 1;
  std::string body = std::move(head);
  body.reserve(size);
  bool first = body.ends_with('[');  // no system message
  for (const WireMessage& message : messages) {
    if (message->empty()) continue;
    if (!first) body.push_back(',');
    first = false;
    body.append(*message);
  }
  body.append("]}");
  return body;
}

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop:
      return "stop";
    case FinishReason::tool_calls:
      return "tool_calls";
    case FinishReason::max_tokens:
      return "max_tokens";
    case FinishReason::content_filter:
      return "content_filter";
    case FinishReason::other:
      return "other";
  }
  return "other";
}

}  // namespace llm

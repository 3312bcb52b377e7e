// The conversation as every wire adapter understands it, and what an answer consists of. Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llm {

enum class Role { user, assistant, tool };

struct ToolCall {
  std::string id;  // unique within its message; made up when the provider sends none
  std::string name;
  std::string arguments;  // JSON text exactly as the model wrote it ("" is read as {})
};

struct Message {
  Role role = Role::user;
  std::string text;
  std::string reasoning;             // assistant: what the provider wants back
  std::vector<ToolCall> tool_calls;  // assistant
  std::string tool_call_id;          // tool
};

struct Usage {
  std::int64_t input_tokens = 0;  // includes cached ones
  std::int64_t output_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t reasoning_tokens = 0;
};

enum class FinishReason { stop, tool_calls, max_tokens, content_filter, other };
std::string_view finish_reason_name(FinishReason reason);

struct Completion {
  Message message;  // role assistant
  FinishReason finish = FinishReason::stop;
  std::optional<Usage> usage;
  int dropped_calls = 0;  // half tool calls at max_tokens: dropped, never run
};

// What the model may call; parameters is a JSON schema as text.
struct ToolSpec {
  std::string name;
  std::string description;
  std::string parameters;
};

}  // namespace llm

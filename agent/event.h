// What a session log holds: one closed variant of payload structs, one line of JSON each: {seq, time, type, data}.
// The log is the state; memory is a fold of it; what the model saw is what was logged (docs/log-format.md).
// Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "llm/adapter.h"
#include "llm/message.h"
#include "sandbox/policy.h"

namespace agent {

enum class InboxTarget { next_turn, next_step, injected };
enum class TurnEndReason { completed, max_tokens, max_steps, blocked, interrupted, aborted, error };
enum class AbortCause { user, parent, hook, disposed };
enum class ApprovalPolicy { ask, never };
enum class ApprovalOutcome { allowed_once, rejected, cancelled, unavailable };

std::string_view name(TurnEndReason reason);  // "max-tokens", ...
std::string_view name(AbortCause cause);
std::string_view name(ApprovalPolicy policy);    // "ask", "never"
std::string_view name(ApprovalOutcome outcome);  // "allowed-once", ...
std::string_view name(InboxTarget target);       // "next-turn", ...
std::optional<ApprovalPolicy> parse_approval_policy(std::string_view text);

// Version-neutral content block of a user: {type: "text", text} or {type: "resource_link", uri, name} or
// {type: "resource", uri, text}.
struct ContentBlock {
  enum class Type { text, resource_link, resource } type = Type::text;
  std::string text, uri, name;
};
std::string_view name(ContentBlock::Type type);                    // "resource_link", ...
std::string model_text(const std::vector<ContentBlock>& content);  // what the model reads of it

namespace event {

struct Header {
  std::string id, cwd, created;
  int version = 1;
  // sandbox::linked_worktree(cwd) before anything ran in it; "" = none. Settled here and never again: later a `.git`
  // file may be the work of a command.
  std::string worktree{};
};
struct InboxItem {
  std::string id;
  InboxTarget target = InboxTarget::next_turn;
  std::vector<ContentBlock> content;
  base::JsonPtr source;
};
struct InboxSpliced {
  std::vector<InboxItem> added;
  std::vector<std::string> removed;
};
struct TurnStart {
  std::int64_t turn = 0;
};
struct TurnEnd {
  std::int64_t turn = 0;
  TurnEndReason reason = TurnEndReason::completed;
  std::optional<AbortCause> cause;  // aborted
  std::string code, message;        // error
  std::string title, time;          // re-stated so that a list reads only the tail
};
struct StepStart {
  std::int64_t turn = 0, step = 0;
};
struct StepEnd {
  std::int64_t turn = 0, step = 0;
};
// source null: typed by the user. Otherwise {kind: "plugin", plugin, form: "snapshot", sections: [{name, text}]}.
struct UserMessage {
  std::vector<ContentBlock> content;
  base::JsonPtr source;
};
struct RequestHeader {
  std::string route;
  llm::RequestHeader header;
};
struct AssistantChunk {
  std::string message_id, kind, text;
};  // ignorable; off by default
struct AssistantMessage {
  std::string message_id;
  llm::Message message;
  std::string route, model;  // source
  std::optional<llm::Usage> usage;
  llm::FinishReason finish = llm::FinishReason::stop;
  bool interrupted = false;
};
struct AssistantAborted {
  std::string message_id, text;
};
struct ToolCall {
  std::string call_id, name, arguments;
};
// facts: an object, see ToolFacts in tool.h.
struct ToolResult {
  std::string call_id, content;
  bool is_error = false;
  base::JsonPtr facts;
};
struct ApprovalAsked {
  std::string id, tool_name, call_id, reason;
  bool grounded = false;
};
struct ApprovalDecided {
  std::string id;
  ApprovalOutcome outcome = ApprovalOutcome::unavailable;
};
struct ApprovalPolicySet {
  ApprovalPolicy policy = ApprovalPolicy::ask;
};
struct SandboxMode {
  sandbox::Mode mode = sandbox::Mode::read_only;
};
struct PermissionPreset {
  std::string preset;
};
struct SessionTitle {
  std::string title;
};
struct LlmRetry {
  int attempt = 0;
  std::string code, message;
  std::int64_t delay_ms = 0;
};

}  // namespace event

// A message that states the whole of something and supersedes earlier ones: {kind: "plugin", form: "snapshot", ...}.
bool is_snapshot(const base::JsonPtr& source);

using Payload = std::variant<event::Header, event::InboxSpliced, event::TurnStart, event::TurnEnd, event::StepStart,
                             event::StepEnd, event::UserMessage, event::RequestHeader, event::AssistantChunk,
                             event::AssistantMessage, event::AssistantAborted, event::ToolCall, event::ToolResult,
                             event::ApprovalAsked, event::ApprovalDecided, event::ApprovalPolicySet, event::SandboxMode,
                             event::PermissionPreset, event::SessionTitle, event::LlmRetry>;

struct Event {
  std::int64_t seq = 0;
  std::string time;
  Payload payload;
};

std::string_view type_name(const Payload& payload);  // "tool/call"
std::string encode(const Event& event);              // one line without newline
// corrupt: not an event. unsupported type: corrupt unless the line says "ignorable": true, then nullopt.
base::Result<std::optional<Event>> decode(std::string_view line);

}  // namespace agent

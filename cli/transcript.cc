#include "cli/transcript.h"

#include <fmt/format.h>

#include "base/text.h"

namespace cli {
namespace {

namespace event = agent::event;

constexpr std::size_t result_bytes = 2000;

std::string indented(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    out += "    " + std::string(text.substr(0, end)) + "\n";
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return out;
}

// One overload per event, so that a new one does not compile until it is decided how it reads. Empty: not for reading.
struct Reader {
  std::string operator()(const event::Header& header) const {
    return fmt::format("session {} in {}, {}\n", header.id, header.cwd, header.created);
  }
  std::string operator()(const event::InboxSpliced&) const { return {}; }
  std::string operator()(const event::TurnStart& start) const { return fmt::format("\n== turn {}\n", start.turn); }
  std::string operator()(const event::TurnEnd& end) const {
    std::string text = fmt::format("== turn {} ended: {}", end.turn, agent::name(end.reason));
    if (end.cause) text += fmt::format(" ({})", agent::name(*end.cause));
    if (!end.message.empty()) text += fmt::format(" ({}: {})", end.code, end.message);
    return text + "\n";
  }
  std::string operator()(const event::StepStart&) const { return {}; }
  std::string operator()(const event::StepEnd&) const { return {}; }
  std::string operator()(const event::UserMessage& message) const {
    return (message.source ? "context:\n" : "user:\n") + indented(agent::model_text(message.content));
  }
  std::string operator()(const event::RequestHeader& header) const {
    return fmt::format("model: {} over {}, {} tools\n", header.header.model, header.route, header.header.tools.size());
  }
  std::string operator()(const event::AssistantChunk&) const { return {}; }
  std::string operator()(const event::AssistantMessage& message) const {
    if (message.message.text.empty()) return {};
    return (message.interrupted ? "agent (interrupted):\n" : "agent:\n") + indented(message.message.text);
  }
  std::string operator()(const event::AssistantAborted& aborted) const {
    return "agent (cut off, asked again):\n" + indented(aborted.text);
  }
  std::string operator()(const event::ToolCall& call) const {
    return fmt::format("call {} {}:\n", call.name, call.call_id) + indented(call.arguments);
  }
  std::string operator()(const event::ToolResult& result) const {
    return fmt::format("result {}{}:\n", result.call_id, result.is_error ? " (error)" : "") +
           indented(base::ellipsize(result.content, result_bytes));
  }
  std::string operator()(const event::ApprovalAsked& asked) const {
    return fmt::format("approval asked for {}: {}{}\n", asked.call_id, asked.reason,
                       asked.grounded ? "" : " (nothing was denied before)");
  }
  std::string operator()(const event::ApprovalDecided& decided) const {
    return fmt::format("approval: {}\n", agent::name(decided.outcome));
  }
  std::string operator()(const event::ApprovalPolicySet& set) const {
    return fmt::format("approvals are now: {}\n", agent::name(set.policy));
  }
  std::string operator()(const event::SandboxMode& set) const {
    return fmt::format("sandbox mode is now: {}\n", sandbox::mode_name(set.mode));
  }
  std::string operator()(const event::PermissionPreset& set) const {
    return fmt::format("permission preset: {}\n", set.preset);
  }
  std::string operator()(const event::SessionTitle& title) const { return fmt::format("title: {}\n", title.title); }
  std::string operator()(const event::LlmRetry& retry) const {
    return fmt::format("model request failed ({}: {}), retry {} after {} ms\n", retry.code, retry.message,
                       retry.attempt, retry.delay_ms);
  }
};

}  // namespace

std::string transcript(const std::vector<agent::Event>& events) {
  std::string text;
  for (const agent::Event& event : events) text += std::visit(Reader{}, event.payload);
  return text;
}

}  // namespace cli

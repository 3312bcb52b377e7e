#include "agent/event.h"

#include <array>
#include <nlohmann/json.hpp>

namespace agent {

using base::Json;

std::string_view name(TurnEndReason reason) {
  switch (reason) {
    case TurnEndReason::completed:
      return "completed";
    case TurnEndReason::max_tokens:
      return "max-tokens";
    case TurnEndReason::max_steps:
      return "max-steps";
    case TurnEndReason::blocked:
      return "blocked";
    case TurnEndReason::interrupted:
      return "interrupted";
    case TurnEndReason::aborted:
      return "aborted";
    case TurnEndReason::error:
      return "error";
  }
  return "error";
}

std::string_view name(AbortCause cause) {
  switch (cause) {
    case AbortCause::user:
      return "user";
    case AbortCause::parent:
      return "parent";
    case AbortCause::hook:
      return "hook";
    case AbortCause::disposed:
      return "disposed";
  }
  return "user";
}

std::string_view name(ApprovalPolicy policy) {
  switch (policy) {
    case ApprovalPolicy::ask:
      return "ask";
    case ApprovalPolicy::never:
      return "never";
  }
  return "never";
}

std::string_view name(ApprovalOutcome outcome) {
  switch (outcome) {
    case ApprovalOutcome::allowed_once:
      return "allowed-once";
    case ApprovalOutcome::rejected:
      return "rejected";
    case ApprovalOutcome::cancelled:
      return "cancelled";
    case ApprovalOutcome::unavailable:
      return "unavailable";
  }
  return "unavailable";
}

std::string_view name(InboxTarget target) {
  switch (target) {
    case InboxTarget::next_turn:
      return "next-turn";
    case InboxTarget::next_step:
      return "next-step";
    case InboxTarget::injected:
      return "injected";
  }
  return "injected";
}

std::string_view name(ContentBlock::Type type) {
  switch (type) {
    case ContentBlock::Type::text:
      return "text";
    case ContentBlock::Type::resource_link:
      return "resource_link";
    case ContentBlock::Type::resource:
      return "resource";
  }
  return "text";
}

std::optional<ApprovalPolicy> parse_approval_policy(std::string_view text) {
  for (const ApprovalPolicy policy : {ApprovalPolicy::ask, ApprovalPolicy::never}) {
    if (name(policy) == text) return policy;
  }
  return std::nullopt;
}

std::string model_text(const std::vector<ContentBlock>& content) {
  std::string text;
  for (const ContentBlock& block : content) {
    if (!text.empty() && text.back() != '\n') text += '\n';
    switch (block.type) {
      case ContentBlock::Type::text:
        text += block.text;
        break;
      case ContentBlock::Type::resource_link:
        text += "[" + (block.name.empty() ? block.uri : block.name) + "](" + block.uri + ")";
        break;
      case ContentBlock::Type::resource:
        text += "<resource uri=" + base::quote(block.uri) + ">\n" + block.text;
        if (text.back() != '\n') text += '\n';
        text += "</resource>";
        break;
    }
  }
  return text;
}

bool is_snapshot(const base::JsonPtr& source) {
  return source && base::get_string(*source, "kind") == "plugin" && base::get_string(*source, "form") == "snapshot";
}

namespace {

Json json_of(const std::vector<ContentBlock>& content) {
  Json list = Json::array();
  for (const ContentBlock& block : content) {
    Json item{{"type", name(block.type)}};
    if (block.type != ContentBlock::Type::text) item["uri"] = block.uri;
    if (block.type == ContentBlock::Type::resource_link) item["name"] = block.name;
    if (block.type != ContentBlock::Type::resource_link) item["text"] = block.text;
    list.push_back(std::move(item));
  }
  return list;
}

Json json_of(const event::InboxItem& item) {
  Json json{{"id", item.id}, {"target", name(item.target)}, {"content", json_of(item.content)}};
  if (item.source) json["source"] = *item.source;
  return json;
}

Json json_of(const llm::Usage& usage) {
  return {{"input_tokens", usage.input_tokens},
          {"output_tokens", usage.output_tokens},
          {"cached_tokens", usage.cached_tokens},
          {"reasoning_tokens", usage.reasoning_tokens}};
}

// One overload per payload, so that a new one does not compile until it is here.
Json data(const event::Header& e) {
  Json header{{"id", e.id}, {"cwd", e.cwd}, {"created", e.created}, {"version", e.version}};
  if (!e.worktree.empty()) header["worktree"] = e.worktree;
  return header;
}

Json data(const event::InboxSpliced& e) {
  Json added = Json::array();
  for (const event::InboxItem& item : e.added) added.push_back(json_of(item));
  return {{"added", std::move(added)}, {"removed", e.removed}};
}

Json data(const event::TurnStart& e) { return {{"turn", e.turn}}; }

Json data(const event::TurnEnd& e) {
  Json json{{"turn", e.turn}, {"reason", name(e.reason)}};
  if (e.cause) json["cause"] = name(*e.cause);
  if (e.reason == TurnEndReason::error) json["error"] = {{"code", e.code}, {"message", e.message}};
  json["title"] = e.title;
  json["time"] = e.time;
  return json;
}

Json data(const event::StepStart& e) { return {{"turn", e.turn}, {"step", e.step}}; }
Json data(const event::StepEnd& e) { return {{"turn", e.turn}, {"step", e.step}}; }

Json data(const event::UserMessage& e) {
  Json json{{"content", json_of(e.content)}};
  if (e.source) json["source"] = *e.source;
  return json;
}

Json data(const event::RequestHeader& e) {
  Json tools = Json::array();
  for (const llm::ToolSpec& tool : e.header.tools) {
    tools.push_back({{"name", tool.name}, {"description", tool.description}, {"parameters", tool.parameters}});
  }
  return {{"route", e.route},
          {"model", e.header.model},
          {"params", e.header.params},
          {"system", e.header.system},
          {"tools", std::move(tools)}};
}

Json data(const event::AssistantChunk& e) { return {{"message_id", e.message_id}, {"kind", e.kind}, {"text", e.text}}; }

Json data(const event::AssistantMessage& e) {
  Json content{{"text", e.message.text}};
  if (!e.message.reasoning.empty()) content["reasoning"] = e.message.reasoning;
  if (!e.message.tool_calls.empty()) {
    Json calls = Json::array();
    for (const llm::ToolCall& call : e.message.tool_calls) {
      calls.push_back({{"id", call.id}, {"name", call.name}, {"arguments", call.arguments}});
    }
    content["tool_calls"] = std::move(calls);
  }
  Json json{{"message_id", e.message_id},
            {"content", std::move(content)},
            {"source", {{"route", e.route}, {"model", e.model}}},
            {"finish", llm::finish_reason_name(e.finish)}};
  if (e.usage) json["usage"] = json_of(*e.usage);
  if (e.interrupted) json["interrupted"] = true;
  return json;
}

Json data(const event::AssistantAborted& e) { return {{"message_id", e.message_id}, {"text", e.text}}; }

Json data(const event::ToolCall& e) { return {{"call_id", e.call_id}, {"name", e.name}, {"arguments", e.arguments}}; }

Json data(const event::ToolResult& e) {
  Json json{{"call_id", e.call_id}, {"content", e.content}, {"is_error", e.is_error}};
  if (e.facts) json["facts"] = *e.facts;
  return json;
}

Json data(const event::ApprovalAsked& e) {
  return {
      {"id", e.id}, {"tool_name", e.tool_name}, {"call_id", e.call_id}, {"reason", e.reason}, {"grounded", e.grounded}};
}

Json data(const event::ApprovalDecided& e) { return {{"id", e.id}, {"outcome", name(e.outcome)}}; }
Json data(const event::ApprovalPolicySet& e) { return {{"policy", name(e.policy)}}; }
Json data(const event::SandboxMode& e) { return {{"mode", sandbox::mode_name(e.mode)}}; }
Json data(const event::PermissionPreset& e) { return {{"preset", e.preset}}; }
Json data(const event::SessionTitle& e) { return {{"title", e.title}}; }

Json data(const event::LlmRetry& e) {
  return {{"attempt", e.attempt}, {"code", e.code}, {"message", e.message}, {"delay_ms", e.delay_ms}};
}

struct TypeName {
  std::string_view operator()(const event::Header&) const { return "session"; }
  std::string_view operator()(const event::InboxSpliced&) const { return "inbox/spliced"; }
  std::string_view operator()(const event::TurnStart&) const { return "turn/start"; }
  std::string_view operator()(const event::TurnEnd&) const { return "turn/end"; }
  std::string_view operator()(const event::StepStart&) const { return "step/start"; }
  std::string_view operator()(const event::StepEnd&) const { return "step/end"; }
  std::string_view operator()(const event::UserMessage&) const { return "user/message"; }
  std::string_view operator()(const event::RequestHeader&) const { return "request/header"; }
  std::string_view operator()(const event::AssistantChunk&) const { return "assistant/chunk"; }
  std::string_view operator()(const event::AssistantMessage&) const { return "assistant/message"; }
  std::string_view operator()(const event::AssistantAborted&) const { return "assistant/aborted"; }
  std::string_view operator()(const event::ToolCall&) const { return "tool/call"; }
  std::string_view operator()(const event::ToolResult&) const { return "tool/result"; }
  std::string_view operator()(const event::ApprovalAsked&) const { return "approval/asked"; }
  std::string_view operator()(const event::ApprovalDecided&) const { return "approval/decided"; }
  std::string_view operator()(const event::ApprovalPolicySet&) const { return "approval/policy"; }
  std::string_view operator()(const event::SandboxMode&) const { return "sandbox/mode"; }
  std::string_view operator()(const event::PermissionPreset&) const { return "permission/preset"; }
  std::string_view operator()(const event::SessionTitle&) const { return "session/title"; }
  std::string_view operator()(const event::LlmRetry&) const { return "llm/retry"; }
};

}  // namespace

std::string_view type_name(const Payload& payload) { return std::visit(TypeName{}, payload); }

std::string encode(const Event& event) {
  Json line{{"seq", event.seq}, {"time", event.time}, {"type", type_name(event.payload)}};
  line["data"] = std::visit([](const auto& payload) { return data(payload); }, event.payload);
  if (std::holds_alternative<event::AssistantChunk>(event.payload)) line["ignorable"] = true;
  return base::dump(line);
}

}  // namespace agent

#include "agent/scrub.h"

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace agent {
namespace {

using base::Json;

bool good(std::string_view text) { return text.find('\0') == std::string_view::npos && base::valid_utf8(text); }

void fix(std::string& text) {
  if (!good(text)) text = base::to_utf8(text);
}

bool good_json(const Json& value) {
  if (value.is_string()) return good(value.get_ref<const std::string&>());
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      if (!good(key) || !good_json(member)) return false;
    }
  } else if (value.is_array()) {
    for (const Json& item : value) {
      if (!good_json(item)) return false;
    }
  }
  return true;
}

Json fixed_json(const Json& value) {
  if (value.is_string()) return base::to_utf8(value.get_ref<const std::string&>());
  if (value.is_object()) {
    Json object = Json::object();
    for (const auto& [key, member] : value.items()) object[base::to_utf8(key)] = fixed_json(member);
    return object;
  }
  if (value.is_array()) {
    Json list = Json::array();
    for (const Json& item : value) list.push_back(fixed_json(item));
    return list;
  }
  return value;
}

void fix(base::JsonPtr& value) {
  if (value && !good_json(*value)) value = base::share(fixed_json(*value));
}

void fix(std::vector<ContentBlock>& content) {
  for (ContentBlock& block : content) {
    fix(block.text);
    fix(block.uri);
    fix(block.name);
  }
}

struct Scrub {
  void operator()(event::Header& e) const { fix(e.id), fix(e.cwd), fix(e.created), fix(e.worktree); }
  void operator()(event::InboxSpliced& e) const {
    for (event::InboxItem& item : e.added) fix(item.id), fix(item.content), fix(item.source);
    for (std::string& id : e.removed) fix(id);
  }
  void operator()(event::TurnStart&) const {}
  void operator()(event::TurnEnd& e) const { fix(e.code), fix(e.message), fix(e.title), fix(e.time); }
  void operator()(event::StepStart&) const {}
  void operator()(event::StepEnd&) const {}
  void operator()(event::UserMessage& e) const { fix(e.content), fix(e.source); }
  void operator()(event::RequestHeader& e) const {
    fix(e.route), fix(e.header.model), fix(e.header.system), fix(e.header.params);
    for (llm::ToolSpec& tool : e.header.tools) fix(tool.name), fix(tool.description), fix(tool.parameters);
  }
  void operator()(event::AssistantChunk& e) const { fix(e.message_id), fix(e.kind), fix(e.text); }
  void operator()(event::AssistantMessage& e) const {
    fix(e.message_id), fix(e.message.text), fix(e.message.reasoning), fix(e.route), fix(e.model);
    for (llm::ToolCall& call : e.message.tool_calls) fix(call.id), fix(call.name), fix(call.arguments);
  }
  void operator()(event::AssistantAborted& e) const { fix(e.message_id), fix(e.text); }
  void operator()(event::ToolCall& e) const { fix(e.call_id), fix(e.name), fix(e.arguments); }
  void operator()(event::ToolResult& e) const { fix(e.call_id), fix(e.content), fix(e.facts); }
  void operator()(event::ApprovalAsked& e) const { fix(e.id), fix(e.tool_name), fix(e.call_id), fix(e.reason); }
  void operator()(event::ApprovalDecided& e) const { fix(e.id); }
  void operator()(event::ApprovalPolicySet&) const {}
  void operator()(event::SandboxMode&) const {}
  void operator()(event::PermissionPreset& e) const { fix(e.preset); }
  void operator()(event::SessionTitle& e) const { fix(e.title); }
  void operator()(event::LlmRetry& e) const { fix(e.code), fix(e.message); }
};

}  // namespace

void scrub(Payload& payload) { std::visit(Scrub{}, payload); }

}  // namespace agent

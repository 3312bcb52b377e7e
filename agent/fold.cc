#include "agent/fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace agent {
namespace {

using base::ErrorCode;
using base::Json;

base::Result<void> refuse(std::string why) { return base::fail(ErrorCode::corrupt, std::move(why)); }

// nlohmann's plain type sorts members, so equal values have one text; whole floating numbers are written as integers
// because JSON knows no difference.
nlohmann::json canonical(const Json& value) {
  if (value.is_object()) {
    nlohmann::json object = nlohmann::json::object();
    for (const auto& [key, member] : value.items()) object[key] = canonical(member);
    return object;
  }
  if (value.is_array()) {
    nlohmann::json list = nlohmann::json::array();
    for (const Json& item : value) list.push_back(canonical(item));
    return list;
  }
  if (value.is_number_float()) {
    const double number = value.get<double>();
    constexpr double exact = 9007199254740992.0;  // beyond it a double is no longer every integer
    if (number >= -exact && number <= exact && number == static_cast<double>(static_cast<std::int64_t>(number))) {
      return static_cast<std::int64_t>(number);
    }
    return number;
  }
  if (value.is_string()) return value.get_ref<const std::string&>();
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  return nullptr;
}

std::string call_key_of(const Json& arguments) {
  nlohmann::json plain = canonical(arguments);
  if (plain.is_object()) {
    plain.erase("sandbox_permissions");
    plain.erase("justification");
  }
  return plain.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string call_key(std::string_view arguments) {
  if (arguments.empty()) return "{}";
  auto parsed = base::parse_json(arguments);
  return parsed ? call_key_of(*parsed) : std::string(arguments);
}

}  // namespace

SameCall::SameCall(std::string name, std::string_view arguments) : name_(std::move(name)), key_(call_key(arguments)) {}
SameCall SameCall::of(std::string name, const Json& arguments) {
  SameCall call;
  call.name_ = std::move(name);
  call.key_ = call_key_of(arguments);
  return call;
}

bool Fold::denied(const std::string& tool_name, const std::string& key) const {
  return denied_.count({tool_name, key}) > 0;
}

bool Fold::rejected_in_turn(const SameCall& call) const {
  return std::find(rejected_.begin(), rejected_.end(), call) != rejected_.end();
}

struct Fold::Check {
  const Fold& fold;

  base::Result<void> in_step() const {
    if (!fold.step_open_) return refuse("stands outside a step");
    return {};
  }
  base::Result<void> calls_answered() const {
    if (fold.pending_calls_.empty()) return {};
    return refuse(fmt::format("stands before the result of call \"{}\"", fold.pending_calls_.front().call.id));
  }

  base::Result<void> operator()(const event::Header&) const { return refuse("is a second header"); }

  base::Result<void> operator()(const event::InboxSpliced& e) const {
    const auto has = [&](const std::string& id) {
      return std::any_of(fold.inbox_.begin(), fold.inbox_.end(), [&](const auto& item) { return item.id == id; });
    };
    for (const std::string& id : e.removed) {
      if (!has(id)) return refuse(fmt::format("removes the inbox entry \"{}\", which is not there", id));
    }
    for (const event::InboxItem& item : e.added) {
      if (has(item.id)) return refuse(fmt::format("adds the inbox entry \"{}\" twice", item.id));
    }
    return {};
  }

  base::Result<void> operator()(const event::TurnStart& e) const {
    if (fold.turn_open_) return refuse("starts a turn inside a turn");
    if (e.turn <= fold.last_turn_) return refuse(fmt::format("starts turn {} after turn {}", e.turn, fold.last_turn_));
    return {};
  }

  base::Result<void> operator()(const event::TurnEnd& e) const {
    if (!fold.turn_open_ || e.turn != fold.last_turn_) return refuse("ends a turn that is not open");
    if (fold.step_open_) return refuse("ends a turn inside a step");
    if (!fold.open_approvals_.empty()) return refuse("ends a turn before an approval was decided");
    return calls_answered();
  }

  base::Result<void> operator()(const event::StepStart& e) const {
    if (!fold.turn_open_ || e.turn != fold.last_turn_) return refuse("starts a step outside its turn");
    if (fold.step_open_) return refuse("starts a step inside a step");
    if (e.step <= fold.last_step_) return refuse(fmt::format("starts step {} after step {}", e.step, fold.last_step_));
    return {};
  }

  base::Result<void> operator()(const event::StepEnd& e) const {
    if (!fold.step_open_ || e.turn != fold.last_turn_ || e.step != fold.last_step_) {
      return refuse("ends a step that is not open");
    }
    return calls_answered();
  }

  base::Result<void> operator()(const event::UserMessage&) const { return calls_answered(); }
  base::Result<void> operator()(const event::RequestHeader&) const { return {}; }
  base::Result<void> operator()(const event::AssistantChunk&) const { return {}; }

  base::Result<void> operator()(const event::AssistantMessage& e) const {
    if (auto good = in_step(); !good) return good;
    if (!fold.awaits_answer_) return refuse("is a second answer in its step");
    if (auto good = calls_answered(); !good) return good;
    std::set<std::string_view> ids;
    for (const llm::ToolCall& call : e.message.tool_calls) {
      if (call.id.empty()) return refuse("has a call without an id");
      if (!ids.insert(call.id).second || fold.call_id_used(call.id)) {
        return refuse(fmt::format("uses the call id \"{}\" again", call.id));
      }
    }
    return {};
  }

  base::Result<void> operator()(const event::AssistantAborted&) const { return in_step(); }
  base::Result<void> operator()(const event::LlmRetry&) const { return in_step(); }

  base::Result<void> operator()(const event::ToolCall& e) const {
    for (const PendingCall& pending : fold.pending_calls_) {
      if (pending.call.id != e.call_id) continue;
      if (pending.started) return refuse(fmt::format("starts call \"{}\" twice", e.call_id));
      return {};
    }
    return refuse(fmt::format("starts call \"{}\", which the model did not make", e.call_id));
  }

  base::Result<void> operator()(const event::ToolResult& e) const {
    if (fold.pending_calls_.empty()) return refuse(fmt::format("is a result without a call (\"{}\")", e.call_id));
    const std::string& next = fold.pending_calls_.front().call.id;
    if (e.call_id != next) {
      return refuse(fmt::format("is the result of \"{}\" where that of \"{}\" comes next", e.call_id, next));
    }
    return {};
  }

  base::Result<void> operator()(const event::ApprovalAsked& e) const {
    if (!fold.turn_open_) return refuse("asks outside a turn");
    for (const OpenApproval& open : fold.open_approvals_) {
      if (open.id == e.id) return refuse(fmt::format("asks \"{}\" twice", e.id));
    }
    return {};
  }

  base::Result<void> operator()(const event::ApprovalDecided& e) const {
    for (const OpenApproval& open : fold.open_approvals_) {
      if (open.id == e.id) return {};
    }
    return refuse(fmt::format("decides \"{}\", which was not asked", e.id));
  }

  base::Result<void> operator()(const event::ApprovalPolicySet&) const { return {}; }
  base::Result<void> operator()(const event::SandboxMode&) const { return {}; }
  base::Result<void> operator()(const event::PermissionPreset&) const { return {}; }
  base::Result<void> operator()(const event::SessionTitle&) const { return {}; }
};

base::Result<void> Fold::check(const Payload& payload) const {
  base::Result<void> good;
  if (!header_) {
    if (!std::holds_alternative<event::Header>(payload)) good = refuse("stands before the header");
  } else {
    good = std::visit(Check{*this}, payload);
  }
  if (good) return good;
  return refuse(fmt::format("{} {}", type_name(payload), good.error().message));
}

struct Fold::Apply {
  Fold& fold;

  void keep(llm::Message message) {
    fold.messages_.push_back(std::make_shared<const llm::Message>(std::move(message)));
  }

  void operator()(const event::Header& e) { fold.header_ = e; }

  void operator()(const event::InboxSpliced& e) {
    for (const std::string& id : e.removed) {
      fold.inbox_.erase(
          std::find_if(fold.inbox_.begin(), fold.inbox_.end(), [&](const auto& i) { return i.id == id; }));
    }
    fold.inbox_.insert(fold.inbox_.end(), e.added.begin(), e.added.end());
  }

  void operator()(const event::TurnStart& e) {
    fold.turn_open_ = true;
    fold.last_turn_ = e.turn;
    fold.last_step_ = 0;
    fold.rejected_.clear();
  }
  void operator()(const event::TurnEnd&) {
    fold.turn_open_ = false;
    fold.awaits_answer_ = false;
  }
  void operator()(const event::StepStart& e) {
    fold.step_open_ = true;
    fold.last_step_ = e.step;
    fold.awaits_answer_ = true;
  }
  void operator()(const event::StepEnd&) { fold.step_open_ = false; }

  void operator()(const event::UserMessage& e) {
    llm::Message message;
    message.role = llm::Role::user;
    message.text = model_text(e.content);
    if (!e.source) fold.last_user_text_ = message.text;
    if (is_snapshot(e.source)) fold.last_context_ = e;
    keep(std::move(message));
  }

  void operator()(const event::RequestHeader& e) { fold.last_header_ = e; }
  void operator()(const event::AssistantChunk&) {}

  void operator()(const event::AssistantMessage& e) {
    fold.awaits_answer_ = false;
    for (const llm::ToolCall& call : e.message.tool_calls) {
      fold.pending_calls_.push_back({call, false});
      fold.used_call_ids_.insert(call.id);
    }
    // Nothing said and nothing called: providers refuse such a message.
    if (!e.message.text.empty() || !e.message.tool_calls.empty()) keep(e.message);
  }

  void operator()(const event::AssistantAborted&) {}
  void operator()(const event::LlmRetry&) {}

  void operator()(const event::ToolCall& e) {
    for (PendingCall& pending : fold.pending_calls_) {
      if (pending.call.id == e.call_id) pending.started = true;
    }
  }

  void operator()(const event::ToolResult& e) {
    if (e.facts && base::get_bool(*e.facts, "denied").value_or(false)) {
      if (const auto key = base::get_string(*e.facts, "denied_key")) {
        fold.denied_.insert({fold.pending_calls_.front().call.name, *key});
      }
    }
    fold.pending_calls_.erase(fold.pending_calls_.begin());
    llm::Message message;
    message.role = llm::Role::tool;
    message.text = e.content;
    message.tool_call_id = e.call_id;
    keep(std::move(message));
  }

  void operator()(const event::ApprovalAsked& e) { fold.open_approvals_.push_back({e.id, e.tool_name, e.call_id}); }

  void operator()(const event::ApprovalDecided& e) {
    const auto asked = std::find_if(fold.open_approvals_.begin(), fold.open_approvals_.end(),
                                    [&](const OpenApproval& open) { return open.id == e.id; });
    if (e.outcome == ApprovalOutcome::rejected) {
      for (const PendingCall& pending : fold.pending_calls_) {
        if (pending.call.id == asked->call_id) fold.rejected_.emplace_back(asked->tool_name, pending.call.arguments);
      }
    }
    fold.open_approvals_.erase(asked);
  }

  void operator()(const event::ApprovalPolicySet& e) { fold.settings_.approval = e.policy; }
  void operator()(const event::SandboxMode& e) { fold.settings_.mode = e.mode; }
  void operator()(const event::PermissionPreset& e) { fold.settings_.preset = e.preset; }
  void operator()(const event::SessionTitle& e) { fold.title_ = e.title; }
};

void Fold::apply(const Payload& payload) { std::visit(Apply{*this}, payload); }

}  // namespace agent

// What a session's events add up to: settings, the retained conversation, what is open. check() is the grammar of a log
// (docs/log-format.md), apply() the fold. The live session, a fresh load and the regeneration of requests all use this
// one. Not thread-safe; the session guards it.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "agent/event.h"
#include "agent/session.h"

namespace agent {

// Arguments as JSON with the escalation fields left out, for "the same call": equal when JSON-equal, whatever the order
// of members. Text that is no JSON is compared as it is.
class SameCall {
 public:
  SameCall(std::string name, std::string_view arguments);
  static SameCall of(std::string name, const base::Json& arguments);
  bool operator==(const SameCall& other) const { return name_ == other.name_ && key_ == other.key_; }

 private:
  SameCall() = default;
  std::string name_, key_;
};

class Fold {
 public:
  struct PendingCall {
    llm::ToolCall call;
    bool started = false;
  };
  struct OpenApproval {
    std::string id, tool_name, call_id;
  };

  base::Result<void> check(const Payload& payload) const;  // corrupt: this event cannot stand here
  void apply(const Payload& payload);                      // only what check() accepted

  bool has_header() const { return header_.has_value(); }
  const event::Header& header() const { return *header_; }
  const Settings& settings() const { return settings_; }
  const std::string& title() const { return title_; }
  std::int64_t next_turn() const { return last_turn_ < 1 ? 1 : last_turn_ + 1; }
  std::int64_t turn() const { return last_turn_; }
  std::int64_t step() const { return last_step_; }
  bool turn_open() const { return turn_open_; }
  bool step_open() const { return step_open_; }
  // The step's request is not answered yet: no assistant/message since step/start.
  bool awaits_answer() const { return awaits_answer_; }

  const std::vector<event::InboxItem>& inbox() const { return inbox_; }
  const std::optional<event::UserMessage>& last_context() const { return last_context_; }
  const std::optional<event::RequestHeader>& last_header() const { return last_header_; }
  const std::optional<std::string>& last_user_text() const { return last_user_text_; }
  // What is sent: in order, each call followed by its result before anything else.
  const std::vector<std::shared_ptr<const llm::Message>>& messages() const { return messages_; }
  const std::vector<PendingCall>& pending_calls() const { return pending_calls_; }  // calls without a result
  const std::vector<OpenApproval>& open_approvals() const { return open_approvals_; }
  bool call_id_used(const std::string& id) const { return used_call_ids_.count(id) > 0; }
  bool denied(const std::string& tool_name, const std::string& key) const;
  bool rejected_in_turn(const SameCall& call) const;

 private:
  struct Check;
  struct Apply;

  std::optional<event::Header> header_;
  Settings settings_;
  std::string title_;
  std::int64_t last_turn_ = -1, last_step_ = 0;
  bool turn_open_ = false, step_open_ = false, awaits_answer_ = false;
  std::vector<event::InboxItem> inbox_;
  std::vector<std::shared_ptr<const llm::Message>> messages_;
  std::optional<event::UserMessage> last_context_;
  std::optional<event::RequestHeader> last_header_;
  std::optional<std::string> last_user_text_;
  std::vector<PendingCall> pending_calls_;
  std::vector<OpenApproval> open_approvals_;
  std::unordered_set<std::string> used_call_ids_;
  std::set<std::pair<std::string, std::string>> denied_;
  std::vector<SameCall> rejected_;
};

}  // namespace agent

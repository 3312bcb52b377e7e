#include "agent/repair.h"

#include <nlohmann/json.hpp>

namespace agent {

event::ToolResult not_started_result(const std::string& call_id, const std::string& why) {
  return {call_id, "[not started: " + why + "]", true, base::share(base::Json{{"started", false}})};
}

std::vector<Payload> repair(const Fold& fold, const std::string& now, const std::optional<base::Error>& error) {
  std::vector<Payload> events;
  for (const Fold::OpenApproval& open : fold.open_approvals()) {
    events.emplace_back(event::ApprovalDecided{open.id, ApprovalOutcome::cancelled});
  }
  for (const Fold::PendingCall& pending : fold.pending_calls()) {
    if (!pending.started) {
      events.emplace_back(not_started_result(pending.call.id, "the turn broke off before this call ran"));
      continue;
    }
    events.emplace_back(event::ToolResult{pending.call.id,
                                          "[interrupted: the turn broke off while this call was running; what it did "
                                          "is unknown, so look before repeating it]",
                                          true, base::share(base::Json{{"started", true}, {"interrupted", true}})});
  }
  if (fold.step_open()) events.emplace_back(event::StepEnd{fold.turn(), fold.step()});
  if (fold.turn_open()) {
    event::TurnEnd end;
    end.turn = fold.turn();
    end.reason = error ? TurnEndReason::error : TurnEndReason::interrupted;
    if (error) end.code = base::error_name(error->code), end.message = error->message;
    end.title = fold.title();
    end.time = now;
    events.emplace_back(std::move(end));
  }
  event::InboxSpliced unclaimed;
  for (const event::InboxItem& item : fold.inbox()) {
    if (item.target == InboxTarget::next_turn) unclaimed.removed.push_back(item.id);
  }
  if (!unclaimed.removed.empty()) events.emplace_back(std::move(unclaimed));
  return events;
}

}  // namespace agent

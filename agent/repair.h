// What a log needs before it can go on after a turn broke off in the middle (its process ended, or a fault of ours):
// pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/event.h"
#include "agent/fold.h"

namespace agent {

// In order: open approvals are decided as cancelled, calls without a result get one that says whether they started, the
// open step and turn are closed (interrupted), prompts that no turn claimed are dropped (their client got no answer).
// With `error` the turn is closed by it instead: the process lives on.
std::vector<Payload> repair(const Fold& fold, const std::string& now, const std::optional<base::Error>& error = {});

// Results of calls that did not run to their end; also used by the live loop.
event::ToolResult not_started_result(const std::string& call_id, const std::string& why);

}  // namespace agent

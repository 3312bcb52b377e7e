// One turn of one session, from its prompt to turn/end, in straight-line code on the session's driver thread
// (contract.md 5). Knows no tool, no provider and no front end.
#pragma once

#include <atomic>
#include <stop_token>
#include <vector>

#include "agent/agent.h"
#include "agent/services.h"
#include "agent/session.h"
#include "agent/tool_table.h"

namespace agent {

// How a turn is told to stop. The first cause wins. Any thread.
class TurnStop {
 public:
  void stop(AbortCause cause) {
    int none = -1;
    cause_.compare_exchange_strong(none, static_cast<int>(cause));
    source_.request_stop();
  }
  std::stop_token token() const { return source_.get_token(); }
  bool stopped() const { return source_.stop_requested(); }
  AbortCause cause() const {
    const int cause = cause_.load();
    return cause < 0 ? AbortCause::user : static_cast<AbortCause>(cause);
  }

 private:
  std::stop_source source_;
  std::atomic<int> cause_{-1};
};

// What a turn runs on; all of it outlives the turn.
struct TurnSetup {
  const Services& services;
  const ToolTable& tools;
  Session& session;
  const TurnStop& stop;
};

// Blocks until the turn is logged to its end. A log that cannot be written ends it with that error.
PromptEnd run_turn(const TurnSetup& setup, std::vector<ContentBlock> prompt);

}  // namespace agent

// The agent as a front end sees it: live sessions, each with one driver thread that runs its turns. Any thread; no
// method but shutdown() blocks on a turn, a model or a tool.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/services.h"
#include "agent/session.h"

namespace agent {

// How a prompt ended; becomes the answer to session/prompt.
struct PromptEnd {
  TurnEndReason reason = TurnEndReason::completed;
  std::optional<AbortCause> cause;
  std::optional<base::Error> error;
  bool retryable = false;
  // Of this turn, for headless exit codes (contract.md 8).
  bool denied = false;               // the last denied or not-granted call had no later success of the same tool on it
  std::string escalation;            // outcome of the last escalation, "" when none
  bool sandbox_unavailable = false;  // the last call was SANDBOX_UNAVAILABLE
};

class Agent {
 public:
  explicit Agent(const Services& services);
  ~Agent();  // shutdown()

  // auth error when no route is ready, saying what to set.
  base::Result<std::shared_ptr<Session>> new_session(const std::string& cwd);
  // `replay` gets every event of the log, before anything new can happen in the session.
  base::Result<std::shared_ptr<Session>> load_session(const std::string& id, const std::string& cwd,
                                                      const std::function<void(const Event&)>& replay);
  std::shared_ptr<Session> find(const std::string& id) const;

  // busy when a turn is running; not_found for an unknown session. Otherwise done is called exactly once, on the
  // driver.
  base::Result<void> prompt(const std::string& id, std::vector<ContentBlock> content,
                            std::function<void(PromptEnd)> done);
  void cancel(const std::string& id,
              AbortCause cause = AbortCause::user);  // unknown or idle: nothing; takes no session lock

  // Appends only what changed. invalid_argument for an unknown preset.
  base::Result<void> set_preset(const std::string& id, const std::string& preset);
  std::string current_preset(const Session& session) const;  // "custom" for any other combination

  // The same text functions live and on replay.
  CallView view(const event::ToolCall& call, const std::string& cwd) const;
  CallView view(const event::ToolCall& call, const event::ToolResult& result, const std::string& cwd) const;

  const Services& services() const;

  // Refuses new work, cancels every session (disposed), kills children at once, joins, syncs logs. Under 2 seconds.
  void shutdown();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace agent

// The consent channel, and the one place where a wider sandbox mode is granted to one call.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/event.h"
#include "agent/session.h"
#include "agent/tool.h"

namespace agent {

// What exactly an answer is about.
struct ApprovalSubject {
  std::string what;         // the whole command, the file that would really be changed
  std::string folder;       // where a command would run; "" for files
  std::vector<Diff> diffs;  // what would be changed, as the result would show it
};

struct ApprovalRequest {
  std::string tool_name, call_id;
  base::JsonPtr arguments;  // shown to the user as raw input
  std::string reason;       // "escalate sandbox to <mode>: <justification>", for the log
  std::string mode;         // the wider one
  std::string justification;
  ApprovalSubject subject;
  bool grounded = false;
};

// First answer wins; nullopt = not mine. Blocks; must return soon after stop. A throw counts as unavailable.
using Answerer = std::function<std::optional<ApprovalOutcome>(Session&, const ApprovalRequest&, std::stop_token)>;

// Thread-safe. One open request per session; others queue. Answer and stop race once, here: the first settles it and is
// logged; a later answer is dropped.
class ApprovalService {
 public:
  explicit ApprovalService(ApprovalPolicy default_policy);
  ~ApprovalService();
  void add_answerer(Answerer answerer);
  ApprovalPolicy policy(const Session& session) const;  // last event, else the default
  ApprovalPolicy default_policy() const;
  // Logs approval/asked and approval/decided as a pair before it returns. `never` is rejected before any answerer.
  // Needs an open turn.
  ApprovalOutcome ask(Session& session, const ApprovalRequest& request, std::stop_token stop);
  // The same, telling a rejection by the policy `never` from one by a user.
  struct Decision {
    ApprovalOutcome outcome = ApprovalOutcome::unavailable;
    bool by_policy = false;
  };
  Decision decide(Session& session, const ApprovalRequest& request, std::stop_token stop);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The two schema members every escalating tool adds, as text to splice in.
extern const char* const escalation_schema_members;
bool asks_wider_mode(const base::Json& arguments);  // has both fields
extern const char* const nothing_confined;          // the refusal where no schema has them

struct Escalation {
  sandbox::Policy policy;  // to run under
  bool escalated = false;
  std::string outcome;  // "allowed-once", "rejected", ... when asked or refused; "" otherwise
};

// Contract 2, order of refusal: each its own text, each an error result that ran nothing. `noun` is "this command" or
// "this operation"; `denied_key` as in ToolOutcome; `subject` is what a user is shown. `approval` may be null. On success
// the policy may be wider.
// After allowed-once the stop token is looked at once more.
tl::expected<Escalation, ToolOutcome> resolve_escalation(const base::Json& arguments, const ToolContext& context,
                                                         const std::string& tool_name, const std::string& noun,
                                                         const std::string& denied_key, ApprovalSubject subject,
                                                         bool confines, ApprovalService* approval);

// "[sandbox: file access denied under <mode> mode]" and, where escalation is advertised and approvals are not `never`,
// one line that tells how to retry. After a command that `succeeded` all the same (many try what they can do without)
// it does not invite to.
std::string denial_marker(sandbox::Mode mode);
std::string denial_hint(sandbox::Mode mode, bool escalation_advertised, ApprovalPolicy policy, bool succeeded);

}  // namespace agent

// Contract 2: when a call may run under a wider mode, and every way in which it may not.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "agent/approval.h"
#include "base/text.h"

namespace agent {

using base::Json;

const char* const escalation_schema_members =
    R"("sandbox_permissions":{"type":"string","enum":["workspace-write","danger-full-access"],)"
    R"("description":"Only to retry a call that the sandbox denied: the narrowest wider mode that suffices. )"
    R"(The user is asked. Needs justification."},)"
    R"("justification":{"type":"string","description":"With sandbox_permissions: one sentence for the user on why this )"
    R"(call needs wider access."})";

const char* const nothing_confined =
    "nothing is confined here, so there is nothing to escalate; send the call without sandbox_permissions and "
    "justification";

bool asks_wider_mode(const Json& arguments) {
  return base::find(arguments, "sandbox_permissions") && base::find(arguments, "justification");
}

std::string denial_marker(sandbox::Mode mode) {
  return fmt::format("[sandbox: file access denied under {} mode]", sandbox::mode_name(mode));
}

std::string denial_hint(sandbox::Mode mode, bool escalation_advertised, ApprovalPolicy policy, bool succeeded) {
  if (!escalation_advertised || policy == ApprovalPolicy::never || mode == sandbox::Mode::danger_full_access) return {};
  const char* modes = mode == sandbox::Mode::read_only
                          ? R"("workspace-write" or "danger-full-access", the narrowest that suffices)"
                          : R"("danger-full-access")";
  return fmt::format(
      "[{}, retry this exact call once with sandbox_permissions ({}) and justification; the user will be asked]",
      succeeded ? "the command succeeded; only if what was denied is needed" : "to do it all the same", modes);
}

namespace {

constexpr std::size_t justification_limit = 2000;  // it is shown in a dialog

class Escalating {
 public:
  Escalating(const ToolContext& context, const std::string& denied_key) : context_(context), denied_key_(denied_key) {}

  tl::unexpected<ToolOutcome> refuse(std::string text, std::string_view outcome) const {
    Json facts{{"mode", sandbox::mode_name(context_.policy.mode)}, {"escalated", false}, {"escalation", outcome}};
    if (!denied_key_.empty()) facts["denied_key"] = denied_key_;
    return tl::unexpected<ToolOutcome>(ToolOutcome{std::move(text), true, base::share(std::move(facts))});
  }
  // Refused for its form: nobody was asked.
  tl::unexpected<ToolOutcome> refuse(std::string text) const { return refuse(std::move(text), "refused"); }

 private:
  const ToolContext& context_;
  const std::string& denied_key_;
};

}  // namespace

tl::expected<Escalation, ToolOutcome> resolve_escalation(const Json& arguments, const ToolContext& context,
                                                         const std::string& tool_name, const std::string& noun,
                                                         const std::string& denied_key, ApprovalSubject subject,
                                                         bool confines, ApprovalService* approval) {
  const Escalating call(context, denied_key);
  const Json* wanted = base::find(arguments, "sandbox_permissions");
  const Json* why = base::find(arguments, "justification");
  if (wanted == nullptr && why == nullptr) return Escalation{context.policy, false, ""};

  if (wanted == nullptr) return call.refuse("justification was sent without sandbox_permissions; send both or neither");
  if (why == nullptr) return call.refuse("sandbox_permissions was sent without justification; send both or neither");
  if (!why->is_string() || base::trim(why->get_ref<const std::string&>()).empty()) {
    return call.refuse("justification is blank; say in one sentence why this call needs wider access");
  }
  if (!confines) return call.refuse(nothing_confined);
  const std::optional<sandbox::Mode> mode =
      wanted->is_string() ? sandbox::parse_mode(wanted->get_ref<const std::string&>()) : std::nullopt;
  if (!mode) return call.refuse("sandbox_permissions must be \"workspace-write\" or \"danger-full-access\"");
  const std::string target(sandbox::mode_name(*mode));
  if (!sandbox::strictly_wider(*mode, context.policy.mode)) {
    return call.refuse(
        fmt::format("sandbox escalation to \"{}\" is not strictly wider than this call's current \"{}\" mode", target,
                    sandbox::mode_name(context.policy.mode)));
  }
  if (approval == nullptr) {
    return call.refuse(
        fmt::format("sandbox escalation to \"{}\" is not possible: this agent has no approval service to ask", target),
        name(ApprovalOutcome::unavailable));
  }
  if (!context.session.turn_open()) {
    return call.refuse(
        fmt::format("sandbox escalation to \"{}\" is not possible: there is no session turn to ask through", target),
        name(ApprovalOutcome::unavailable));
  }

  const std::string rejected = fmt::format("the user rejected escalating {} to \"{}\"", noun, target);
  if (approval->policy(context.session) != ApprovalPolicy::never &&
      context.session.rejected_in_turn(tool_name, arguments)) {
    return call.refuse(rejected + " (this call was rejected before in this turn; it is not asked again)",
                       name(ApprovalOutcome::rejected));
  }

  ApprovalRequest request;
  request.tool_name = tool_name;
  request.call_id = context.call_id;
  request.arguments = base::share(arguments);
  request.mode = target;
  request.justification = base::ellipsize(why->get_ref<const std::string&>(), justification_limit);
  request.reason = fmt::format("escalate sandbox to {}: {}", target, request.justification);
  request.subject = std::move(subject);
  request.grounded = context.session.denied_before(tool_name, denied_key);
  const ApprovalService::Decision decision = approval->decide(context.session, request, context.stop);

  switch (decision.outcome) {
    case ApprovalOutcome::allowed_once:
      break;
    case ApprovalOutcome::rejected:
      if (decision.by_policy) {
        return call.refuse(
            fmt::format(
                "sandbox escalation to \"{}\" is not possible: approvals are off (policy never), nobody was asked; "
                "do not request escalation",
                target),
            name(decision.outcome));
      }
      return call.refuse(rejected, name(decision.outcome));
    case ApprovalOutcome::cancelled:
      return call.refuse(
          fmt::format("the request to escalate {} to \"{}\" was cancelled; nothing was run", noun, target),
          name(decision.outcome));
    case ApprovalOutcome::unavailable:
      return call.refuse(
          fmt::format("sandbox escalation to \"{}\" is not possible: nobody answered the approval request", target),
          name(decision.outcome));
  }
  if (context.stop.stop_requested()) {
    return call.refuse(fmt::format("escalating {} to \"{}\" was allowed, but the turn was stopped before it started; "
                                   "nothing was run",
                                   noun, target),
                       name(ApprovalOutcome::cancelled));
  }
  Escalation granted{context.policy, true, std::string(name(ApprovalOutcome::allowed_once))};
  granted.policy.mode = *mode;
  return granted;
}

}  // namespace agent

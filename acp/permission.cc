// Consent over session/request_permission. Only the option this file offers for it approves; any other answer does not.
#include <nlohmann/json.hpp>

#include "acp/bounds.h"
#include "acp/connection.h"
#include "base/text.h"

namespace acp {
namespace {

using agent::ApprovalOutcome;

constexpr const char* allow_option = "allow-once";
constexpr const char* reject_option = "reject-once";
constexpr std::size_t reason_bytes = 16 * 1024, subject_bytes = 64 * 1024;

// All that the answer is about: a title is cut, and what a call names may lead elsewhere. The model words part of it,
// so nothing in it may redraw or reorder what the user reads.
std::string question(const agent::ApprovalRequest& request) {
  const auto plain = [](const std::string& part, std::size_t bytes) {
    return fit_text(base::without_direction_marks(base::clean_terminal_text(part)), bytes);
  };
  std::string text = plain(request.reason, reason_bytes);
  if (!request.subject.empty()) text += "\n\n" + plain(request.subject, subject_bytes);
  if (!request.grounded) text += "\n\nThis was not denied before in this session: it asks without having tried.";
  return text;
}

base::Json permission_params(Connection& connection, const agent::Session& session,
                             const agent::ApprovalRequest& request) {
  const agent::event::ToolCall call{request.call_id, request.tool_name,
                                    request.arguments ? base::dump(*request.arguments) : std::string("{}")};
  base::Json shown = call_members(call, connection.agent.view(call, session.cwd()));
  shown["content"] =
      base::Json::array({{{"type", "content"}, {"content", {{"type", "text"}, {"text", question(request)}}}}});
  return {{"sessionId", session.id()},
          {"toolCall", std::move(shown)},
          {"options",
           {{{"optionId", allow_option}, {"name", "Allow once"}, {"kind", "allow_once"}},
            {{"optionId", reject_option}, {"name", "Reject"}, {"kind", "reject_once"}}}}};
}

ApprovalOutcome outcome_of(const tl::expected<base::JsonPtr, base::RpcError>& answer) {
  if (!answer)
    return answer.error().code == base::rpc_code::cancelled ? ApprovalOutcome::cancelled : ApprovalOutcome::unavailable;
  const base::Json* outcome = *answer ? base::find(**answer, "outcome") : nullptr;
  if (!outcome || !outcome->is_object()) return ApprovalOutcome::unavailable;
  const auto kind = base::get_string(*outcome, "outcome");
  if (kind == "cancelled") return ApprovalOutcome::cancelled;
  if (kind != "selected") return ApprovalOutcome::rejected;
  return base::get_string(*outcome, "optionId") == allow_option ? ApprovalOutcome::allowed_once
                                                                : ApprovalOutcome::rejected;
}

// Shared by the waiting driver, the reader that brings the answer and whoever stops the turn.
struct Wait {
  base::Mutex mutex;
  base::CondVar changed;
  std::optional<tl::expected<base::JsonPtr, base::RpcError>> answer GUARDED_BY(mutex);
  bool stopped GUARDED_BY(mutex) = false;
};

ApprovalOutcome ask(Connection& connection, const agent::Session& session, const agent::ApprovalRequest& request,
                    const std::stop_token& stop) {
  const auto wait = std::make_shared<Wait>();
  const std::int64_t id = connection.peer->call("session/request_permission",
                                                permission_params(connection, session, request), [wait](auto answer) {
                                                  base::Lock lock(wait->mutex);
                                                  wait->answer = std::move(answer);
                                                  wait->changed.notify_all();
                                                });
  std::stop_callback on_stop(stop, [wait] {
    base::Lock lock(wait->mutex);
    wait->stopped = true;
    wait->changed.notify_all();
  });
  {
    base::Lock lock(wait->mutex);
    while (!wait->answer && !wait->stopped) wait->changed.wait(wait->mutex);
    if (wait->answer) return outcome_of(*wait->answer);
  }
  connection.peer->cancel_call(id);
  return ApprovalOutcome::cancelled;
}

}  // namespace

agent::Answerer permission_answerer(std::weak_ptr<Connection> connection) {
  return [connection = std::move(connection)](agent::Session& session, const agent::ApprovalRequest& request,
                                              std::stop_token stop) -> std::optional<ApprovalOutcome> {
    const auto self = connection.lock();
    if (!self) return std::nullopt;
    const auto open = self->find(session.id());
    if (!open) return std::nullopt;  // another front end's session
    return ask(*self, session, request, stop);
  };
}

}  // namespace acp

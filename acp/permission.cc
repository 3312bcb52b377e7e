// Consent over session/request_permission. Only the option this file offers for it approves; any other answer does not.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "acp/bounds.h"
#include "acp/connection.h"
#include "acp/projection.h"
#include "base/text.h"

namespace acp {
namespace {

using agent::ApprovalOutcome;

constexpr const char* allow_option = "allow-once";
constexpr const char* reject_option = "reject-once";
constexpr std::size_t subject_bytes = 64 * 1024, line_bytes = 16 * 1024;
constexpr std::size_t short_subject = 120;  // bytes that are seen at a glance

// How much there is to read, where it may not be seen at once: blanks can push the rest out of view.
std::string extent(std::string_view text) {
  const auto lines = 1 + std::count(text.begin(), text.end(), '\n');
  if (lines == 1 && text.size() <= short_subject) return {};
  return " (" + std::to_string(lines) + (lines == 1 ? " line, " : " lines, ") + std::to_string(text.size()) + " bytes)";
}

// All that the answer is about: a title is cut, and what a call names may lead elsewhere. The model words part of it:
// what it wants done stands first and is set apart line by line, what it says about it is one line and marked as its
// own, so that nothing of it can be read as ours or take the rest out of sight.
std::string question(const agent::ApprovalRequest& request) {
  const agent::ApprovalSubject& subject = request.subject;
  const std::string_view what = base::trim(subject.what);
  std::string text = "Allow once with " + request.mode + extent(what) + ":\n\n" +
                     fit_text(base::indented(base::plain_text(what)), subject_bytes);
  if (!subject.folder.empty()) text += "\n\nin " + fit_text(base::plain_line(subject.folder), line_bytes);
  text += "\n\nThe model's words: " + fit_text(base::plain_line(request.justification), line_bytes);
  if (!request.grounded) text += "\n\nThis was not denied before in this session: it asks without having tried.";
  return text;
}

base::Json question_content(const agent::ApprovalRequest& request) {
  base::Json content = base::Json::array({text_content(question(request))});
  for (base::Json& entry : diff_content(request.subject.diffs)) content.push_back(std::move(entry));
  return content;
}

base::Json permission_params(Connection& connection, const agent::Session& session,
                             const agent::ApprovalRequest& request) {
  const agent::event::ToolCall call{request.call_id, request.tool_name,
                                    request.arguments ? base::dump(*request.arguments) : std::string("{}")};
  base::Json shown = call_members(call, connection.agent.view(call, session.cwd()));
  shown["content"] = question_content(request);
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

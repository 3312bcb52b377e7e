// session/prompt and the two ways to cancel one.
#include <nlohmann/json.hpp>

#include "acp/answers.h"
#include "acp/connection.h"
#include "acp/prompt_content.h"
#include "base/text.h"

namespace acp {
namespace {

namespace code = base::rpc_code;

std::optional<OpenSession::Prompt> take_prompt(OpenSession& open) {
  base::Lock lock(open.mutex);
  return std::exchange(open.prompt, std::nullopt);
}

base::RpcError prompt_running() {
  return rpc_error(code::invalid_request,
                   "a prompt of this session is running; wait for its answer or send session/cancel first");
}

}  // namespace

void session_prompt(Connection& connection, Call call) {
  const auto id = base::get_string(call.params, "sessionId");
  if (!id) return call.reply->error(invalid_params("sessionId: must be a string"));
  const auto open = connection.find(*id);
  if (!open)
    return call.reply->error(rpc_error(code::not_found, "no session \"" + base::ellipsize(*id, 100) +
                                                            "\" is open; session/new or session/load opens one"));
  auto content = read_prompt(base::find(call.params, "prompt"));
  if (!content) return call.reply->error(std::move(content.error()));
  if (open->turn_runs()) return call.reply->error(prompt_running());
  {
    base::Lock lock(open->mutex);
    open->prompt.emplace(OpenSession::Prompt{base::share(call.id), std::move(*call.reply)});
  }
  // Every update of the turn was queued by its observer before this is called, on the same thread.
  const auto done = [open](const agent::PromptEnd& end) {
    auto prompt = take_prompt(*open);  // before the answer: the client may send the next prompt at once
    if (!prompt) return;
    auto answer = prompt_answer(end);
    if (answer)
      prompt->reply.result(**answer);
    else
      prompt->reply.error(std::move(answer.error()));
  };
  const auto started = connection.agent.prompt(*id, std::move(*content), done);
  if (started) return;
  if (auto prompt = take_prompt(*open))
    prompt->reply.error(started.error().code == base::ErrorCode::busy ? prompt_running() : from_error(started.error()));
}

void session_cancel(Connection& connection, Call call) {
  const auto id = base::get_string(call.params, "sessionId");
  if (id && connection.find(*id)) connection.agent.cancel(*id);
}

// Every other request is answered before the next line is read, so only a prompt can be meant.
void cancel_request(Connection& connection, Call call) {
  const base::Json* id = base::find(call.params, "requestId");
  if (!id) return;
  std::vector<std::shared_ptr<OpenSession>> sessions;
  {
    base::Lock lock(connection.mutex);
    for (const auto& [name, open] : connection.sessions) sessions.push_back(open);
  }
  for (const auto& open : sessions) {
    bool meant = false;
    {
      base::Lock lock(open->mutex);
      meant = open->prompt && *open->prompt->id == *id;
    }
    if (meant) connection.agent.cancel(open->session->id());
  }
}

}  // namespace acp

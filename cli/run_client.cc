#include "cli/run_client.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/mutex.h"
#include "base/rpc_peer.h"
#include "base/text.h"
#include "base/thread.h"

namespace cli {
namespace {

using base::Json;
using Answer = tl::expected<base::JsonPtr, base::RpcError>;

constexpr std::chrono::seconds cancel_patience{5};
constexpr std::size_t activity_line_bytes = 500;
constexpr std::string_view denial_marker = "[sandbox: file access denied";
constexpr std::string_view justification_mark = "\nThe model's words: ";
constexpr std::string_view thought_suffix = "-thought";

std::string first_line(std::string_view text) {
  return base::ellipsize(text.substr(0, text.find('\n')), activity_line_bytes);
}

// The text blocks of a call's content, joined.
std::string content_text(const Json& call) {
  std::string text;
  const Json* content = base::find(call, "content");
  if (!content || !content->is_array()) return text;
  for (const Json& item : *content) {
    const Json* block = item.is_object() ? base::find(item, "content") : nullptr;
    if (!block || !block->is_object()) continue;
    text += base::get_string(*block, "text").value_or("") + "\n";
  }
  return text;
}

std::string_view early_end_text(std::string_view stop_reason) {
  if (stop_reason == "max_turn_requests") {
    return "acp-agent: stopped at the step limit before the work was done; a higher `max_steps` of the agent-loop "
           "entry allows more";
  }
  if (stop_reason == "max_tokens") {
    return "acp-agent: the model's answer was cut off at its output limit; a higher `max_tokens` of the model's entry "
           "allows more";
  }
  if (stop_reason == "refusal") {
    return "acp-agent: the model's server withheld the answer, or the rest of it (content filter); ask for it in other "
           "words, or use another model";
  }
  return {};
}

std::string error_text(const base::RpcError& error) {
  const std::string details = error.data ? base::get_string(*error.data, "details").value_or("") : "";
  return details.empty() ? error.message : details;
}

}  // namespace

struct RunClient::State {
  RunRequest request;
  RunOutput output;
  std::unique_ptr<base::RpcPeer> peer;

  base::Mutex mutex;
  base::CondVar changed;
  int signal GUARDED_BY(mutex) = 0;
  bool output_lost GUARDED_BY(mutex) = false;

  // Reader thread, then, after it ended, the owner.
  std::string message_id;
  bool mid_line = false;
  bool unfinished = false;  // text of the current message came, and nothing yet that shows it to be complete
  std::string held;         // that text, unless live
  bool partial_said = false;

  // Waits for the answer; gives up `patience` after an interruption, which is passed on as session/cancel once.
  std::optional<Answer> call(const std::string& method, Json params, const std::string& cancel_session = "");
  void update(const Json& params);
  void attempt(std::string_view id);
  void message(const Json& update);
  void complete();
  void tool_call(const Json& update);
  void enforcement(const Json& update);
  void permission(const Json& params, base::Reply reply);
  void print(std::string_view text);
  void end_line();
};

std::optional<Answer> RunClient::State::call(const std::string& method, Json params,
                                             const std::string& cancel_session) {
  struct Slot {
    std::optional<Answer> answer;
  };
  const auto slot = std::make_shared<Slot>();
  peer->call(method, std::move(params), [this, slot](Answer answer) {
    base::Lock lock(mutex);
    slot->answer = std::move(answer);
    changed.notify_all();
  });
  {
    base::Lock lock(mutex);
    while (!slot->answer && signal == 0 && !output_lost) changed.wait(mutex);
    if (slot->answer) return slot->answer;
  }
  if (cancel_session.empty()) return std::nullopt;
  peer->notify("session/cancel", {{"sessionId", cancel_session}});
  const auto deadline = std::chrono::steady_clock::now() + cancel_patience;
  base::Lock lock(mutex);
  while (!slot->answer && changed.wait_until(mutex, deadline)) {
  }
  return slot->answer;
}

void RunClient::State::print(std::string_view text) {
  if (text.empty()) return;
  {
    base::Lock lock(mutex);
    if (output_lost) return;
  }
  mid_line = text.back() != '\n';
  const base::Result<void> written = output.answer(text);
  if (written) return;
  output.activity(fmt::format("acp-agent: the answer could not be written to stdout ({})", written.error().message));
  base::Lock lock(mutex);
  output_lost = true;
  changed.notify_all();
}

void RunClient::State::end_line() {
  if (mid_line) print("\n");
}

// Two messages of a turn have a tool call between them; without one the second is another attempt at the first.
void RunClient::State::attempt(std::string_view id) {
  if (id == message_id) return;
  message_id = id;
  if (!std::exchange(unfinished, false)) return;
  held.clear();
  if (!output.live) return;
  end_line();
  output.activity("[the answer broke off; trying again]");
}

void RunClient::State::message(const Json& update) {
  const Json* content = base::find(update, "content");
  if (!content || !content->is_object()) return;
  attempt(base::get_string(update, "messageId").value_or(""));
  const std::string text = base::get_string(*content, "text").value_or("");
  if (text.empty()) return;
  unfinished = true;
  if (output.live) return print(text);
  held += text;
}

void RunClient::State::complete() {
  unfinished = false;
  print(std::exchange(held, {}));
  end_line();
}

void RunClient::State::tool_call(const Json& update) {
  complete();
  // The queue may have folded an update into its call, so both are looked at for everything.
  if (base::get_string(update, "sessionUpdate") == "tool_call") {
    output.activity("* " + first_line(base::get_string(update, "title").value_or("tool call")));
  }
  const std::string text = content_text(update);
  if (const std::size_t at = text.find(denial_marker); at != std::string::npos) {
    output.activity("  " + first_line(std::string_view(text).substr(at)));
  }
  enforcement(update);
  if (base::get_string(update, "status") == "failed") output.activity("  failed: " + first_line(text));
}

// Once: it holds for the machine and the mode rather than for the call.
void RunClient::State::enforcement(const Json& update) {
  const Json* raw = base::find(update, "rawOutput");
  const std::string how = raw && raw->is_object() ? base::get_string(*raw, "enforcement").value_or("") : "";
  if (!how.starts_with("partial") || std::exchange(partial_said, true)) return;
  output.activity("  the sandbox cannot hold everything here: " + first_line(how));
}

void RunClient::State::update(const Json& params) {
  const Json* update = base::find(params, "update");
  if (!update || !update->is_object()) return;
  const std::string kind = base::get_string(*update, "sessionUpdate").value_or("");
  if (kind == "agent_message_chunk") message(*update);
  if (kind == "agent_thought_chunk") {
    // The thought of a message has the message's id and a suffix; a new attempt may have no text of its own.
    const std::string id = base::get_string(*update, "messageId").value_or("");
    if (id.ends_with(thought_suffix)) attempt(std::string_view(id).substr(0, id.size() - thought_suffix.size()));
  }
  if (kind == "tool_call" || kind == "tool_call_update") tool_call(*update);
}

void RunClient::State::permission(const Json& params, base::Reply reply) {
  complete();
  const std::string wanted = request.allow ? "allow_once" : "reject_once";
  std::string option;
  if (const Json* options = base::find(params, "options"); options && options->is_array()) {
    for (const Json& offered : *options) {
      if (offered.is_object() && base::get_string(offered, "kind") == wanted) {
        option = base::get_string(offered, "optionId").value_or("");
      }
    }
  }
  const Json* call = base::find(params, "toolCall");
  const std::string asked = call && call->is_object() ? content_text(*call) : "";
  output.activity(fmt::format("  {} {}", first_line(asked),
                              option.empty()  ? "no answer possible"
                              : request.allow ? "allowed once (--approve always)"
                                              : "rejected (--approve never)"));
  // At the start of a line: what the model wants done is indented.
  if (const std::size_t at = asked.find(justification_mark); at != std::string::npos) {
    output.activity("  " + first_line(std::string_view(asked).substr(at + 1)));
  }
  if (option.empty()) {
    reply.result({{"outcome", {{"outcome", "cancelled"}}}});
  } else {
    reply.result({{"outcome", {{"outcome", "selected"}, {"optionId", option}}}});
  }
}

RunClient::RunClient(std::unique_ptr<base::LineTransport> transport, RunRequest request, RunOutput output)
    : state_(std::make_shared<State>()) {
  state_->request = std::move(request);
  state_->output = std::move(output);
  base::RpcPeer::Handlers handlers;
  State* state = state_.get();  // outlives the peer, which it owns
  handlers.on_notification = [state](const std::string& method, const Json& params) {
    if (method == "session/update") state->update(params);
  };
  handlers.on_request = [state](const std::string& method, const Json& params, const Json&, base::Reply reply) {
    if (method == "session/request_permission") return state->permission(params, std::move(reply));
    reply.error({base::rpc_code::method_not_found, "this client does not offer " + method, nullptr});
  };
  state_->peer = std::make_unique<base::RpcPeer>(std::move(transport), std::move(handlers), base::RpcPeer::Options{});
}

RunClient::~RunClient() { state_->peer.reset(); }

void RunClient::interrupt(int signal) {
  base::Lock lock(state_->mutex);
  if (state_->signal == 0) state_->signal = signal;
  state_->changed.notify_all();
}

int RunClient::drive() {
  State& state = *state_;
  base::Thread reader("client", [&state] { state.peer->run(); });
  RunEnd end;
  std::optional<int> early;
  bool answered = false;

  const auto failed = [&](const char* what, const std::optional<Answer>& answer) {
    if (answer && *answer) return false;
    early = exit_status::failed;
    if (answer) {
      state.output.activity(fmt::format("acp-agent: {}: {}", what, error_text(answer->error())));
      const int code = answer->error().code;
      // A key or a folder that is not there is set by whoever starts this.
      if (code == base::rpc_code::auth_required || code == base::rpc_code::invalid_params) early = exit_status::usage;
    }
    return true;
  };
  const auto prompt = [&] {
    const Json no_files = {{"fs", {{"readTextFile", false}, {"writeTextFile", false}}}, {"terminal", false}};
    if (failed("initialize", state.call("initialize", {{"protocolVersion", 1}, {"clientCapabilities", no_files}})))
      return;
    const auto session = state.call("session/new", {{"cwd", state.request.cwd}, {"mcpServers", Json::array()}});
    if (failed("cannot start a session", session)) return;
    const std::string id = base::get_string(***session, "sessionId").value_or("");
    const auto answer = state.call(
        "session/prompt",
        {{"sessionId", id}, {"prompt", Json::array({{{"type", "text"}, {"text", state.request.prompt}}})}}, id);
    if (!answer) {
      early = exit_status::failed;
      return;
    }
    if (!*answer) {
      end.error = true;
      const base::RpcError& error = answer->error();
      end.retryable = error.data && base::get_bool(*error.data, "retryable").value_or(false);
      state.output.activity(
          fmt::format("acp-agent: {}{}", error_text(error), end.retryable ? " (it may work later)" : ""));
      return;
    }
    answered = true;
    end.stop_reason = base::get_string(***answer, "stopReason").value_or("");
    const Json* meta = base::find(***answer, "_meta");
    const Json* facts = meta && meta->is_object() ? base::find(*meta, "acp_agent") : nullptr;
    if (facts && facts->is_object()) {
      end.denied = base::get_bool(*facts, "denied").value_or(false);
      end.sandbox_unavailable = base::get_bool(*facts, "sandbox_unavailable").value_or(false);
    }
  };
  prompt();
  state.peer->stop_reading();
  reader.join();
  if (answered) {
    state.complete();
  } else if (!state.held.empty()) {
    state.output.activity("acp-agent: an unfinished answer was dropped");
  }
  state.end_line();
  if (const std::string_view why = early_end_text(end.stop_reason); !why.empty()) state.output.activity(why);
  state.peer->shutdown(std::chrono::milliseconds(0));

  base::Lock lock(state.mutex);
  end.signal = state.signal;
  if (end.signal == 0 && state.output_lost) return exit_status::failed;
  if (end.signal == 0 && early) return *early;
  return exit_code(end);
}

}  // namespace cli

#include "acp/wire_order.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/rpc_peer.h"

namespace acp {
namespace {

// Kinds that belong to a turn or a replay; modes, titles and usage may come at any time.
bool of_a_turn(std::string_view kind) {
  constexpr std::array<std::string_view, 6> kinds{"user_message_chunk", "agent_message_chunk", "agent_thought_chunk",
                                                  "tool_call",          "tool_call_update",    "plan"};
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

// A line that is no request never came here; base::RpcPeer answers it by itself, maybe with the id of one that did.
// Only its text tells the two apart.
bool by_the_peer(const base::Json& error) {
  const std::string text = base::get_string(error, "message").value_or("");
  return base::get_int(error, "code") == base::rpc_code::parse_error || text.rfind("invalid request: ", 0) == 0 ||
         text == "params must be an object";
}

std::string session_of(const base::Json& params) { return base::get_string(params, "sessionId").value_or(""); }

}  // namespace

void WireOrder::incoming(const base::Json& id, const std::string& method, const base::Json& params) {
  base::Lock lock(mutex_);
  Request request{method, params.is_object() ? session_of(params) : ""};
  if (method == "session/load") ++sessions_[request.session].loads;
  if (method == "session/prompt") ++sessions_[request.session].prompts;
  pending_[base::dump(id)].requests.push_back(std::move(request));
}

std::optional<std::string> WireOrder::outgoing(const base::Json& message) {
  base::Lock lock(mutex_);
  const auto method = base::get_string(message, "method");
  if (!method) return answer(message);
  const base::Json* params = base::find(message, "params");
  if (!params || !params->is_object()) return "a message of ours has no params object";
  if (*method == "session/update") return update(*params);
  if (*method == "session/request_permission") return permission(*params);
  return std::nullopt;
}

std::optional<std::string> WireOrder::answer(const base::Json& message) {
  const base::Json* id = base::find(message, "id");
  if (!id) return "an answer has no id";
  const base::Json* error = base::find(message, "error");
  if (error && by_the_peer(*error)) return std::nullopt;
  const auto found = pending_.find(base::dump(*id));
  if (found == pending_.end()) return "a second answer, or one to no request: id " + base::dump(*id);
  Pending& pending = found->second;
  ++pending.answers;
  const bool last = pending.answers == pending.requests.size();
  if (!error) {
    pending.any_succeeded = true;
    const base::Json* result = base::find(message, "result");
    const std::string session = result ? session_of(*result) : "";
    const bool makes = std::any_of(pending.requests.begin(), pending.requests.end(),
                                   [](const Request& request) { return request.method == "session/new"; });
    if (makes && pending.requests.size() == 1 && session.empty()) return "a session/new result has no sessionId";
    if (makes && !session.empty()) sessions_[session].announced = true;
  }
  if (!last) return std::nullopt;
  for (const Request& request : pending.requests) {
    SessionState& session = sessions_[request.session];
    if (request.method == "session/prompt") --session.prompts;
    if (request.method != "session/load") continue;
    --session.loads;
    session.announced = session.announced || pending.any_succeeded;
  }
  pending_.erase(found);
  return std::nullopt;
}

std::optional<std::string> WireOrder::update(const base::Json& params) {
  const std::string id = session_of(params);
  const base::Json* update = base::find(params, "update");
  if (!update || !update->is_object()) return "a session/update has no update object";
  const std::string kind = base::get_string(*update, "sessionUpdate").value_or("");
  SessionState& session = sessions_[id];
  if (!session.announced && session.loads == 0) return kind + " before the result that names session " + id;
  if (of_a_turn(kind) && session.loads == 0 && session.prompts == 0)
    return kind + " outside a turn or replay of session " + id;
  const std::string call = base::get_string(*update, "toolCallId").value_or("");
  if (kind == "tool_call") session.calls.insert(call);
  if (kind == "tool_call_update" && !session.calls.count(call)) return "tool_call_update before the tool_call " + call;
  return std::nullopt;
}

std::optional<std::string> WireOrder::permission(const base::Json& params) {
  const std::string id = session_of(params);
  SessionState& session = sessions_[id];
  if (!session.announced) return "a permission request before the result that names session " + id;
  if (session.prompts == 0) return "a permission request outside a turn of session " + id;
  const base::Json* shown = base::find(params, "toolCall");
  const std::string call = shown ? base::get_string(*shown, "toolCallId").value_or("") : "";
  if (!session.calls.count(call)) return "a permission request before its tool_call " + call;
  return std::nullopt;
}

}  // namespace acp

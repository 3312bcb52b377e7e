// session/new, session/load and session/set_mode.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "acp/answers.h"
#include "acp/connection.h"
#include "acp/session_params.h"
#include "base/log.h"
#include "base/text.h"

namespace acp {
namespace {

namespace code = base::rpc_code;

std::string quoted(const std::string& text) { return "\"" + base::ellipsize(text, 100) + "\""; }

// Ids become folder names: anything else cannot be one of ours and is never looked up.
bool plausible_id(const std::string& id) {
  return !id.empty() && id.size() <= 128 && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
  });
}

base::RpcError unknown_session(const std::string& id) {
  return rpc_error(code::not_found, "no session " + quoted(id) + "; session/new makes one");
}

void note_servers(const SessionParams& params) {
  if (params.mcp_servers)
    base::log_warning(std::to_string(params.mcp_servers) +
                      " MCP server(s) of the client are not connected: this version connects none");
}

}  // namespace

void session_new(Connection& connection, Call call) {
  const auto params = read_session_params(call.params);
  if (!params) return call.reply->error(params.error());
  auto session = connection.agent.new_session(params->cwd);
  if (!session) return call.reply->error(from_error(session.error()));
  note_servers(*params);
  const auto open = connection.keep(*session);
  const auto projector = connection.projector(**session);
  base::Json result{{"sessionId", (*session)->id()}};
  if (connection.options.presets) result["modes"] = connection.modes(**session);
  // Only now may anything of this session follow.
  call.reply->result(std::move(result));
  connection.observe(open, projector);
}

void session_load(Connection& connection, Call call) {
  const auto id = base::get_string(call.params, "sessionId");
  if (!id) return call.reply->error(invalid_params("sessionId: must be a string"));
  const auto params = read_session_params(call.params);
  if (!params) return call.reply->error(params.error());
  if (!plausible_id(*id)) return call.reply->error(unknown_session(*id));
  if (const auto open = connection.find(*id); open && open->turn_runs())
    return call.reply->error(rpc_error(code::invalid_request, "a turn of session " + quoted(*id) +
                                                                  " is running; cancel it before loading the session"));
  // Collected first: what a failing load read must not be shown.
  std::vector<agent::Event> events;
  auto session =
      connection.agent.load_session(*id, params->cwd, [&](const agent::Event& event) { events.push_back(event); });
  if (!session) return call.reply->error(from_error(session.error()));
  note_servers(*params);
  const auto open = connection.keep(*session);
  const auto projector = connection.projector(**session);
  for (const auto& event : events) projector->replay(event);
  projector->finish_replay();
  base::Json result = base::Json::object();
  if (connection.options.presets) result["modes"] = connection.modes(**session);
  call.reply->result(std::move(result));
  connection.observe(open, projector);
}

void session_set_mode(Connection& connection, Call call) {
  if (!connection.options.presets)
    return call.reply->error(rpc_error(code::method_not_found, "session/set_mode: no modes are offered here"));
  const auto id = base::get_string(call.params, "sessionId");
  if (!id) return call.reply->error(invalid_params("sessionId: must be a string"));
  const auto mode = base::get_string(call.params, "modeId");
  if (!mode) return call.reply->error(invalid_params("modeId: must be a string"));
  const auto open = connection.find(*id);
  if (!open) return call.reply->error(unknown_session(*id));
  const auto& presets = connection.agent.services().presets;
  if (std::none_of(presets.begin(), presets.end(), [&](const auto& preset) { return preset.id == *mode; })) {
    std::string known;
    for (const auto& preset : presets) known += (known.empty() ? "" : ", ") + preset.id;
    return call.reply->error(invalid_params("modeId: unknown mode " + quoted(*mode) + "; use one of " + known));
  }
  // The session's observer sends current_mode_update when this changes something.
  if (const auto set = connection.agent.set_preset(*id, *mode); !set) return call.reply->error(from_error(set.error()));
  call.reply->result(base::Json::object());
}

}  // namespace acp

// initialize and authenticate. No model, network or session work happens here: clients give up on a slow start.
#include <nlohmann/json.hpp>

#include "acp/answers.h"
#include "acp/connection.h"
#include "base/text.h"

namespace acp {
namespace {

constexpr const char* auth_method = "api-key";

}  // namespace

// Clients that speak a later draft send `info` and `capabilities` instead; nothing of the client's is needed here.
void initialize(Connection& connection, Call call) {
  const base::Json* version = base::find(call.params, "protocolVersion");
  if (!version || !version->is_number())
    return call.reply->error(invalid_params("protocolVersion: must be a number; this agent speaks version 1"));
  connection.initialized = true;
  // With the one method of type "agent" a client that must authenticate can, and gets an answer at once.
  call.reply->result(
      {{"protocolVersion", 1},
       {"agentCapabilities",
        {{"loadSession", true},
         {"promptCapabilities", {{"image", false}, {"audio", false}, {"embeddedContext", true}}},
         {"mcpCapabilities", {{"http", false}, {"sse", false}}},
         {"sessionCapabilities", base::Json::object()}}},
       {"authMethods",
        base::Json::array({{{"id", auth_method},
                            {"name", "API key"},
                            {"description", "Uses the model key of the agent's environment or configuration."}}})},
       {"agentInfo", {{"name", "acp-agent"}, {"title", "acp-agent"}, {"version", connection.options.version}}}});
}

void authenticate(Connection& connection, Call call) {
  const auto method = base::get_string(call.params, "methodId");
  if (!method) return call.reply->error(invalid_params("methodId: must be a string"));
  if (*method != auth_method)
    return call.reply->error(invalid_params("methodId: unknown method \"" + base::ellipsize(*method, 60) +
                                            "\"; use \"" + auth_method + "\""));
  const agent::Services& services = connection.agent.services();
  if (agent::choose_route(services)) return call.reply->result(base::Json::object());
  call.reply->error(from_error({base::ErrorCode::auth, agent::route_missing(services), {}}));
}

}  // namespace acp

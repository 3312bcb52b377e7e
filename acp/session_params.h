// The parameters that session/new and session/load share, checked. Pure but for looking at the folder; any thread.
#pragma once

#include <string>

#include "base/error.h"
#include "base/json.h"
#include "base/rpc_peer.h"

namespace acp {

// The canonical cwd. -32602 with the path of what is wrong. MCP servers are checked for shape; `mcp_servers` is how
// many were given (they are not connected).
struct SessionParams {
  std::string cwd;
  std::size_t mcp_servers = 0;
};
tl::expected<SessionParams, base::RpcError> read_session_params(const base::Json& params);

}  // namespace acp

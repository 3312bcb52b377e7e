// The `acp` entry of a composition: says that ACP is served and to whom. main makes the acp::Server itself, because
// only it knows the transport.
#pragma once

#include "agent/plugin.h"

namespace acp {

// Key: surface (editor | automation). Modes are offered to editors only.
agent::Plugin acp_plugin();

}  // namespace acp

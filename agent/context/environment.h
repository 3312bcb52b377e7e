// The `environment` section of the runtime context: what differs from session to session, which is why it is not in the
// system prompt (providers cache that by prefix). No date: it would be stale, and a command tells it.
#pragma once

#include <string>

#include "agent/services.h"

namespace agent {

ContextSection environment_section();
std::string platform_text();  // "Linux x86_64"

}  // namespace agent

// The plugins of this folder, for the table of the product. Pure; any thread.
#pragma once

#include <vector>

#include "agent/plugin.h"

namespace tools {

std::vector<agent::Plugin> tool_plugins();

}  // namespace tools

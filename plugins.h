// Every plugin of the product: the table that cordis.yml entries are looked up in. Adding a plugin: one line in
// plugins.cc, or a function in the plugins_*.cc of its seam. Pure; any thread.
#pragma once

#include <vector>

#include "agent/plugin.h"

namespace plugins {

std::vector<agent::Plugin> table();

// By seam; each is one entry name.
agent::Plugin sandbox_policy();
agent::Plugin sandbox_local();
agent::Plugin bash_sandbox();
agent::Plugin bash_local();
agent::Plugin fs_sandbox();
agent::Plugin fs_local();
agent::Plugin fs_observation_policy();
agent::Plugin user_approval();
agent::Plugin permission_presets();
agent::Plugin session_log();
agent::Plugin agent_loop();

}  // namespace plugins

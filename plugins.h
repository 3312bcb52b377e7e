// Every plugin of the product: the table that cordis.yml entries are looked up in, put together from the tables of the
// folders and of the plugins_*.cc beside this. An entry is added in one of those. Pure; any thread.
#pragma once

#include <vector>

#include "agent/plugin.h"

namespace plugins {

std::vector<agent::Plugin> table();

std::vector<agent::Plugin> sandbox_plugins();  // what a call may change
std::vector<agent::Plugin> session_plugins();  // what surrounds a session

}  // namespace plugins

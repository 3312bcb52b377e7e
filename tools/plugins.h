// The tool plugins. Adding a tool: one file that implements agent::Tool and its plugin function, one line here and one
// in plugins.cc.
#pragma once

#include "agent/plugin.h"

namespace tools {

agent::Plugin bash_plugin();  // tool-bash: bash
agent::Plugin fs_plugin();    // tool-fs: read, write, edit

}  // namespace tools

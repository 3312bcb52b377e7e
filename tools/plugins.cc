#include "tools/plugins.h"

namespace tools {

// A tool is one file with its agent::Tool and its plugin function; it is declared and listed here.
agent::Plugin bash_plugin();  // tool-bash: bash
agent::Plugin fs_plugin();    // tool-fs: read, write, edit

std::vector<agent::Plugin> tool_plugins() { return {bash_plugin(), fs_plugin()}; }

}  // namespace tools

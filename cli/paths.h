// Where the product keeps and looks for things. It reads the password database and the file system; relative
// values of XDG variables are ignored, as their specification says.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/error.h"

namespace cli {

using Env = std::function<std::optional<std::string>(const std::string&)>;

Env process_env();
std::string home_folder(const Env& env);  // $HOME, else the password database; "" when neither knows
std::string state_folder(
    const Env& env);  // $XDG_STATE_HOME/acp-agent, else ~/.local/state/acp-agent; "" without a home

std::string config_folder(const Env& env);  // $XDG_CONFIG_HOME/acp-agent, else ~/.config/acp-agent; "" without a home

struct ConfigSource {
  std::string name;  // the file's path, or "(built in) cordis.yml"
  std::string text;
};

// --config, $ACP_AGENT_CONFIG, the user's config folder, the installed default, the embedded one. Never the working
// directory on its own: a composition is the operator's code, and a cloned repository is not the operator.
// A file that was named, or is there but cannot be read, is an error and not skipped.
base::Result<ConfigSource> find_config(const std::string& option, const Env& env, const std::string& executable);

// Nothing when files can be made in this folder, which need not exist yet; else why not. Leaves nothing behind.
base::Result<void> check_writable(const std::string& folder);

}  // namespace cli

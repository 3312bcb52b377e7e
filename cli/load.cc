#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/child.h"
#include "base/clock.h"
#include "cli/output.h"
#include "cli/program.h"

namespace cli {
namespace {

std::string current_folder() {
  std::unique_ptr<char, decltype(&std::free)> path(get_current_dir_name(), &std::free);
  return path ? std::string(path.get()) : std::string();
}

std::string absolute(const std::string& path) { return path.front() == '/' ? path : current_folder() + "/" + path; }

std::string executable() {
  std::string path(4096, '\0');
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  path.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return path;
}

// Where the composition stands. Empty: nowhere.
std::string working_folder(const Options& options) {
  // A folder that is not there is the subcommand's to refuse.
  if (!options.cwd.empty()) return sandbox::canonical_path(options.cwd).value_or(current_folder());
  std::string folder = current_folder();
  // Kept sessions can be read from anywhere.
  if (folder.empty() && options.command == Command::sessions) return "/";
  return folder;
}

// The adapters have read their keys. Children get an environment without them, and this process keeps no second copy
// that a later fault could leak.
void forget_keys(const agent::Services& services) {
  for (const llm::Route& route : services.routes) {
    for (const std::string& variable : route.key_variables) {
      if (char* value = std::getenv(variable.c_str())) {
        explicit_bzero(value, std::strlen(value));
        unsetenv(variable.c_str());
      }
    }
  }
}

}  // namespace

Loaded load(const Program& program, const Options& options, const agent::Overrides& overrides) {
  Loaded loaded;
  const Env env = process_env();
  loaded.state_dir = state_folder(env);

  agent::ConfigureContext context;
  context.world.env = env;
  context.world.cwd = working_folder(options);
  context.state_dir = loaded.state_dir;
  context.call_init = base::helper_path("call-init").value_or("");
  context.landlock_run = base::helper_path("landlock-run").value_or("");
  context.overrides = overrides;

  if (context.world.cwd.empty()) {
    loaded.composition.faults.push_back(
        {"acp-agent", 0, "the current folder no longer exists (deleted, or not reachable); start in another one"});
    return loaded;
  }
  const base::Result<ConfigSource> source = find_config(options.config, env, executable());
  if (!source) {
    loaded.composition.faults.push_back({"acp-agent", 0, source.error().message});
    return loaded;
  }
  loaded.source = *source;
  context.config_dir = config_folder(env);
  if (access(loaded.source.name.c_str(), F_OK) == 0) context.config_file = absolute(loaded.source.name);
  loaded.file = base::parse_config(loaded.source.name, loaded.source.text, context.world);
  loaded.composition = agent::compose(loaded.file, program.plugins, context, base::real_world());
  forget_keys(loaded.composition.services);
  return loaded;
}

bool sound(const Loaded& loaded) {
  for (const base::Fault& fault : loaded.composition.faults) note(base::to_string(fault));
  return loaded.composition.faults.empty();
}

bool sound_for(const Loaded& loaded, const Program& program, agent::Seam needed) {
  if (!sound(loaded)) return false;
  if (loaded.composition.gives(needed)) return true;
  note(base::to_string({loaded.source.name, 0,
                        fmt::format("no entry gives the {}; add an entry with name {}", agent::seam_name(needed),
                                    agent::givers(program.plugins, needed))}));
  return false;
}

}  // namespace cli

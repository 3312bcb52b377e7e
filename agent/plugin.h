// Composition: a plugin is a name, the seams it needs, uses and gives, and how its config becomes a mount step. The table of
// plugins is plugins.cc. Nothing is created while configuring; all faults of a file are reported together.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/services.h"
#include "base/config_reader.h"
#include "base/error.h"

namespace agent {

// Seams entries give and need. route, tools, presets, front_end collect in file order; every other is given once.
enum class Seam { route, policy, sandbox, shell, confining_shell, fs, approval, presets, tools, log, loop, front_end };
std::string_view seam_name(Seam seam);
bool is_list(Seam seam);

using Mount = std::function<base::Result<void>(Services&)>;

// Facts of the process that configuring may look at.
struct ConfigureContext {
  base::ConfigWorld world;
  std::string state_dir;
  std::string call_init, landlock_run;  // absolute; "" when not found
};

struct Plugin {
  std::string name;
  std::vector<Seam> needs;
  std::vector<Seam> uses;
  std::vector<Seam> gives;
  // Reads and checks its config; returns what to do at mount. Called even when other entries have faults.
  std::function<Mount(base::ConfigReader&, const ConfigureContext&)> configure;
};

struct Composition {
  std::vector<base::Fault> faults;
  Services services;  // valid when faults is empty
};

// Parses, configures every entry, matches seams (absent, given twice, cycle), then mounts in order of need.
Composition compose(const base::ConfigFile& file, const std::vector<Plugin>& plugins, const ConfigureContext& context,
                    base::World world);

}  // namespace agent

// Composition: a plugin is a name, the seams it needs, uses and gives, and how its config becomes a mount step. The
// table of plugins is plugins.cc. Nothing is created while configuring; all faults of a file are reported together.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/services.h"
#include "base/config_reader.h"
#include "base/error.h"

namespace agent {

// Seams entries give and need. route, tools, presets, front_end collect in file order; every other is given once.
enum class Seam {
  route,
  policy,
  sandbox,
  shell,
  confining_shell,
  fs,
  fs_observation,  // only orders: the file tools read the switch when they are mounted
  approval,
  presets,
  tools,
  log,
  loop,
  front_end,
};
std::string_view seam_name(Seam seam);
bool is_list(Seam seam);

using Mount = std::function<base::Result<void>(Services&)>;

// What a command line decides instead of the file, before anything is mounted.
struct Overrides {
  std::optional<sandbox::Mode> mode;       // of sandbox-policy
  std::optional<ApprovalPolicy> approval;  // of user-approval
  std::vector<std::string> chain;          // of sandbox-local: limits the backends; empty = the file's
};

// Facts of the process that configuring may look at.
struct ConfigureContext {
  base::ConfigWorld world;
  std::string state_dir;
  std::string config_dir, config_file;  // the user's folder of compositions, and the one in use; "" = none
  std::string call_init, landlock_run;  // absolute; "" when not found
  Overrides overrides;
  std::string entry_id;  // of the entry being configured; set by compose()
};

struct Plugin {
  std::string name;
  std::vector<Seam> needs;
  std::vector<Seam> uses;  // absent: a null field the plugin handles; present: mounted before it
  std::vector<Seam> gives;
  // Reads and checks its config; returns what to do at mount. Called even when other entries have faults. The reader's
  // finish() is called by compose().
  std::function<Mount(base::ConfigReader&, const ConfigureContext&)> configure;
};

struct Composition {
  std::vector<base::Fault> faults;  // in line order
  Services services;                // valid when faults is empty
  std::vector<Seam> given;          // what the entries give, whatever their faults
  bool gives(Seam seam) const;
};

// Parses, configures every entry, matches seams (absent, given twice, cycle), then mounts in order of need.
Composition compose(const base::ConfigFile& file, const std::vector<Plugin>& plugins, const ConfigureContext& context,
                    base::World world);

// Which plugins give a seam, "bash-sandbox or bash-local", for texts that say what to add.
std::string givers(const std::vector<Plugin>& plugins, Seam seam);

}  // namespace agent

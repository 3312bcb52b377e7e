// The program: what main gives, what every subcommand shares, and the subcommands. Each returns the process's exit
// code.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/plugin.h"
#include "base/config_reader.h"
#include "base/error.h"
#include "base/fd.h"
#include "cli/options.h"
#include "cli/paths.h"

namespace cli {

class Signals;

struct Program {
  std::string version;
  std::vector<agent::Plugin> plugins;  // every plugin an entry may name
  Signals* signals = nullptr;          // outlives the subcommand
};

// A composition as found and mounted.
struct Loaded {
  ConfigSource source;
  base::ConfigFile file;
  std::string state_dir;
  agent::Composition composition;
};

// Finds, reads, composes; then the environment no longer holds the routes' keys. Never fails: what was wrong is in
// composition.faults.
Loaded load(const Program& program, const Options& options, const agent::Overrides& overrides = {});
// Prints every fault to stderr. True when there was none.
bool sound(const Loaded& loaded);
// As sound(), and the composition gives what a subcommand needs.
bool sound_for(const Loaded& loaded, const Program& program, agent::Seam needed);

int serve(const Program& program, const Options& options);  // acp
int run(const Program& program, const Options& options);
int check(const Program& program, const Options& options);
int print_config(const Program& program, const Options& options);
int confine(const Program& program, const Options& options);
int doctor(const Program& program, const Options& options);
int sessions(const Program& program, const Options& options);

int dispatch(const Program& program, int argc, char** argv);

}  // namespace cli

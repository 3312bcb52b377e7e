// `acp-agent check` and `acp-agent --print-config`: the composition, judged and shown without starting.
#include <fmt/format.h>

#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/program.h"

namespace cli {

int check(const Program& program, const Options& options) {
  const Loaded loaded = load(program, options);
  if (!sound_for(loaded, program, agent::Seam::loop)) return exit_status::usage;
  const char* remark = loaded.composition.gives(agent::Seam::front_end) ? "" : "; no front end: only `run` works";
  return print(fmt::format("{}: sound, {} entries{}\n", loaded.source.name, loaded.file.entries.size(), remark))
             ? exit_status::done
             : exit_status::failed;
}

int print_config(const Program& program, const Options& options) {
  const Loaded loaded = load(program, options);
  std::string text = fmt::format("# {}\n", loaded.source.name);
  for (const base::ConfigEntry& entry : loaded.file.entries) {
    text += fmt::format("- id: {}\n  name: {}\n", entry.id, entry.name);
    const std::string config = base::print_config(entry, 4);
    if (config.find_first_not_of(" \n{}") != std::string::npos) text += "  config:\n" + config;
    if (text.back() != '\n') text += '\n';
  }
  const bool written = print(text);
  if (!sound(loaded)) return exit_status::usage;
  return written ? exit_status::done : exit_status::failed;
}

}  // namespace cli

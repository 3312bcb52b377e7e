// `acp-agent confine`: one command under the composed sandbox, exactly as a tool call would run it.
#include <fmt/format.h>

#include "base/child.h"
#include "base/clock.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/signals.h"
#include "sandbox/git_folder.h"

namespace cli {

int confine(const Program& program, const Options& options) {
  agent::Overrides overrides;
  if (!options.runner.empty()) overrides.chain = {options.runner};
  const Loaded loaded = load(program, options, overrides);
  if (!sound_for(loaded, program, agent::Seam::confining_shell)) return exit_status::usage;
  const agent::Services& services = loaded.composition.services;

  // The sandbox's runner would fail on it, and that reads as a broken sandbox.
  if (base::find_program(options.argv.front(), base::search_path()) == base::ProgramFile::not_executable) {
    note(fmt::format("acp-agent confine: {}: not executable", options.argv.front()));
    return exit_status::not_executable;
  }

  const base::Result<std::string> cwd = sandbox::canonical_path(".");
  const base::Result<std::string> root = options.root.empty() ? cwd : sandbox::canonical_path(options.root);
  if (!cwd || !root) {
    note("acp-agent confine: " + (cwd ? root.error().message : cwd.error().message));
    return exit_status::usage;
  }
  sandbox::Policy policy = agent::policy_of(*services.policy, *root);
  policy.mode = options.mode.value_or(policy.mode);
  policy.worktree = sandbox::linked_worktree(*root);

  std::stop_source stop;
  program.signals->on_end([stop](int) mutable { stop.request_stop(); });
  const base::Result<int> code = services.shell->run_attached(options.argv, *cwd, policy, stop.get_token());
  program.signals->on_end({});
  if (const int signal = program.signals->first(); signal != 0) return 128 + signal;
  if (code) return *code;
  note(fmt::format("acp-agent confine: {}: {}", base::error_name(code.error().code), code.error().message));
  if (!code.error().detail.empty()) note(code.error().detail);
  if (code.error().code == base::ErrorCode::sandbox_unavailable) return exit_status::sandbox_unavailable;
  return code.error().code == base::ErrorCode::command_start ? exit_status::no_program : exit_status::failed;
}

}  // namespace cli

// `acp-agent doctor`: what works on this machine, in words. Runs the sandbox's real probes; asks no model and no
// network.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "agent/log.h"
#include "base/child.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/signals.h"
#include "sandbox/git_folder.h"
#include "sandbox/protect.h"

namespace cli {
namespace {

std::string helper_line(const char* name) {
  const base::Result<std::string> path = base::helper_path(name);
  return fmt::format("  {}: {}\n", name, path ? *path : "MISSING (" + path.error().message + ")");
}

std::string route_lines(const agent::Services& services) {
  std::string text;
  const llm::Route* chosen = agent::choose_route(services);
  for (const llm::Route& route : services.routes) {
    const std::string state = route.ready ? "ready" : "not ready: " + route.missing;
    const char* remark = &route == chosen    ? " (used)"
                         : route.chosen_only ? " (only when chosen by ACP_AGENT_ROUTE)"
                                             : "";
    text += fmt::format("  {}: {}, model {}{}\n", route.id, state, route.model, remark);
  }
  if (!chosen) text += "  No prompt can be answered yet. " + agent::route_missing(services) + "\n";
  return text;
}

// In words, when new sessions could not be kept.
std::string state_fault(const agent::Services& services) {
  if (!services.log) return {};
  const base::Result<void> writable = check_writable(services.log->root);
  if (writable) return {};
  return "fault: " + agent::cannot_keep_sessions(services.log->root, writable.error().message) + "\n";
}

// In words, when the operator's own runner cannot be started. The sandbox takes the operator's word for it.
std::string runner_fault(const Loaded& loaded) {
  std::string text;
  for (const base::ConfigEntry& entry : loaded.file.entries) {
    if (entry.name != "sandbox-local") continue;
    std::vector<base::Fault> reported;  // the composition's own reader reported them
    base::ConfigReader reader(entry.config, "", &reported);
    const std::vector<std::string> runner = reader.strings("runner_command", {});
    if (runner.empty()) continue;
    const base::ProgramFile file = base::find_program(runner.front(), base::search_path());
    if (file == base::ProgramFile::executable) continue;
    text +=
        fmt::format("fault: the program of `runner_command`, {}, {}; no command can be confined until it is there\n",
                    runner.front(), file == base::ProgramFile::missing ? "does not exist" : "is no executable file");
  }
  return text;
}

// What is surprising about a root, as it would be for a session in this folder.
std::string root_warnings(const sandbox::Policy& policy, const sandbox::Host& host) {
  std::string text;
  if (policy.workspace_root == "/") text += "  warning: / is no workspace root; start in a project folder\n";
  if (!host.home.empty() && policy.workspace_root == host.home) {
    text += "  warning: the workspace root is your home folder; a command may change everything of yours in it\n";
  }
  if (policy.mode != sandbox::Mode::workspace_write) return text;
  const base::Result<std::vector<std::string>> roots = sandbox::writable_roots(policy, host);
  if (!roots) return text + "  warning: " + roots.error().message + "\n";
  for (const std::string& root : *roots) text += fmt::format("  writable: {}\n", root);
  for (const std::string& path : policy.writable)
    if (std::none_of(roots->begin(), roots->end(), [&](const auto& root) { return sandbox::path_within(path, root); }))
      text += fmt::format("  warning: {} of `writable` is not there, so it is not writable: make the folder\n", path);
  const auto guarded = sandbox::protected_paths(policy, *roots, host);
  if (!guarded) text += "  warning: " + guarded.error().message + "\n";
  if (guarded) {
    for (const std::string& path : guarded->kept) text += fmt::format("  read-only: {}\n", path);
    for (const std::string& path : guarded->links)
      text += fmt::format("  warning: {} is a link; what it leads to is protected, the link itself is not\n", path);
  }
  if (const auto below = sandbox::state_below_roots(*roots, host)) {
    text +=
        fmt::format("  warning: the agent's state ({}) is below a writable root; XDG_STATE_HOME moves it\n", *below);
  }
  return text;
}

std::string socket_lines(const sandbox::Policy& policy, const sandbox::Host& host) {
  if (policy.mode == sandbox::Mode::danger_full_access) return {};
  std::string text;
  const sandbox::ControlSockets sockets = sandbox::control_sockets(policy.sockets, host.socket_variables, true);
  for (const auto* list : {&sockets.folders, &sockets.files})
    for (const std::string& path : *list) text += fmt::format("  control socket, masked where mounts can: {}\n", path);
  return text;
}

// The chain stops probing at the first backend that works; this says what the others would do in its place.
std::vector<std::string> other_backends(const Program& program, const Options& options,
                                        const std::vector<std::string>& shown, std::stop_token stop) {
  std::vector<std::string> lines;
  for (const char* name : {"bwrap", "landlock"}) {
    const std::string prefix = std::string(name) + ":";
    const bool known = std::any_of(shown.begin(), shown.end(), [&](const std::string& line) {
      return line.compare(0, prefix.size(), prefix) == 0;
    });
    if (known) continue;
    agent::Overrides only;
    only.chain = {name};
    const Loaded alone = load(program, options, only);
    if (!alone.composition.faults.empty() || !alone.composition.services.sandbox) continue;
    for (const std::string& line : alone.composition.services.sandbox->describe(stop)) lines.push_back(line);
  }
  return lines;
}

}  // namespace

int doctor(const Program& program, const Options& options) {
  const Loaded loaded = load(program, options);
  std::string text =
      fmt::format("acp-agent {}\ncomposition: {}\nstate folder: {}\nhelpers:\n", program.version,
                  loaded.source.name.empty() ? "(none)" : loaded.source.name,
                  loaded.state_dir.empty() ? "(none: no home folder; set XDG_STATE_HOME)" : loaded.state_dir);
  text += helper_line("call-init") + helper_line("landlock-run");
  if (geteuid() == 0)
    text += "warning: running as root; confinement is weaker and mistakes are dearer than as an ordinary user\n";
  if (!sound(loaded)) {
    (void)print(text);
    return exit_status::usage;
  }

  const agent::Services& services = loaded.composition.services;
  int code = exit_status::done;
  if (const std::string fault = state_fault(services); !fault.empty()) {
    text += fault;
    code = exit_status::usage;
  }
  text += "model routes:\n" + route_lines(services);
  if (!services.policy) {
    text += "sandbox: none composed; commands and file changes run with all your rights\n";
  } else {
    sandbox::Policy policy = agent::policy_of(*services.policy, services.policy->workspace_root);
    policy.worktree = sandbox::linked_worktree(policy.workspace_root);
    text += fmt::format("sandbox: {}, workspace root {} (a session's own folder goes first)\n",
                        sandbox::mode_name(policy.mode), policy.workspace_root);
    text += root_warnings(policy, services.host);
    text += socket_lines(policy, services.host);
  }
  if (services.sandbox) {
    std::stop_source stop;
    program.signals->on_end([stop](int) mutable { stop.request_stop(); });
    const std::vector<std::string> shown = services.sandbox->describe(stop.get_token());
    for (const std::string& line : shown) text += "  " + line + "\n";
    // Confining a read-only command has no other condition than a working backend.
    const sandbox::Policy usual = agent::policy_of(*services.policy, services.policy->workspace_root);
    sandbox::Policy probe = usual;
    probe.mode = sandbox::Mode::read_only;
    const auto confined = services.sandbox->confine({"true"}, probe, "/", stop.get_token());
    if (!confined || confined->backend != "custom") {
      for (const std::string& line : other_backends(program, options, shown, stop.get_token()))
        text += "  " + line + "\n";
    }
    program.signals->on_end({});
    if (const int signal = program.signals->first(); signal != 0) return 128 + signal;
    if (confined) {
      // What is not covered depends on the mode.
      const auto real = usual.mode == sandbox::Mode::workspace_write
                            ? services.sandbox->confine({"true"}, usual, "/", stop.get_token())
                            : confined;
      const sandbox::Enforcement& enforcement = (real ? real : confined)->enforcement;
      text += fmt::format("  used: {}, {}\n", confined->backend, sandbox::to_string(enforcement));
      if (!real) text += fmt::format("  warning: no command runs in this folder: {}\n", real.error().message);
    } else {
      text += fmt::format("  NOT USABLE: {}\n", confined.error().message);
      code = exit_status::sandbox_unavailable;
    }
  }
  if (const std::string fault = runner_fault(loaded); !fault.empty()) {
    text += fault;
    code = exit_status::sandbox_unavailable;
  } else if (services.shell) {
    text += fmt::format("commands: {}\n", services.shell->confines() ? "confined" : "NOT confined");
  }
  if (services.fs) text += fmt::format("file tools: {}\n", services.fs->confines() ? "confined" : "NOT confined");
  return print(text) ? code : exit_status::failed;
}

}  // namespace cli

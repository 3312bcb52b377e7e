#include "sandbox/local_sandbox.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/mutex.h"
#include "sandbox/git_folder.h"
#include "sandbox/probe.h"
#include "sandbox/protect.h"

namespace sandbox {

namespace {

using base::ErrorCode;

// Fixed places only: a PATH entry could lie below a writable root.
constexpr const char* bwrap_places[] = {"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"};
constexpr std::size_t most_bwrap_arguments = 9000;  // MAX_ARGS of bubblewrap 0.8
constexpr const char* older_abi_notice = "landlock-run: partial enforcement (older Landlock ABI)";

enum class Backend { bwrap, landlock, seatbelt };

std::string_view backend_name(Backend backend) {
  switch (backend) {
    case Backend::bwrap:
      return "bwrap";
    case Backend::landlock:
      return "landlock";
    case Backend::seatbelt:
      return "seatbelt";
  }
  return "";
}

std::optional<Backend> parse_backend(std::string_view name) {
  for (Backend backend : {Backend::bwrap, Backend::landlock, Backend::seatbelt})
    if (backend_name(backend) == name) return backend;
  return std::nullopt;
}

// Settled once per verdict.
struct Verdict {
  std::optional<Backend> backend;   // empty: none is usable
  int abi = 0;                      // of Landlock; 0: the launcher cannot enforce it here
  bool listener = false;            // its filter can have a listener
  std::string bwrap;                // where it was found
  std::vector<std::string> rights;  // that root keeps on bwrap
  std::vector<std::string> lines;   // one per backend tried
};

class LocalSandbox final : public Sandbox {
 public:
  explicit LocalSandbox(LocalSandboxOptions options) : options_(std::move(options)) {}

  base::Result<ConfinedArgv> confine(const std::vector<std::string>& argv, const Policy& policy, const std::string& cwd,
                                     std::stop_token stop) override {
    if (argv.empty()) return base::fail(ErrorCode::internal, "no command to confine");
    if (policy.mode == Mode::danger_full_access)
      return base::fail(ErrorCode::internal, "danger-full-access does not come to the sandbox");
    auto roots = writable_roots(policy, options_.host);
    if (!roots) return tl::unexpected(roots.error());
    if (state_below_roots(*roots, options_.host)) {
      // A folder that is not there cannot be protected: the command could make it.
      make_folder(options_.host.state_dir);
      const auto state = canonical_path(options_.host.state_dir);
      if (!state || *state != options_.host.state_dir) {
        return base::fail(ErrorCode::sandbox_unavailable,
                          "the agent's state folder " + options_.host.state_dir +
                              " lies below a writable root and cannot be protected (missing, "
                              "or reached through a link): set XDG_STATE_HOME to another folder");
      }
    }
    // The same for the folder whose cordis.yml the next process would obey.
    if (below_any(options_.host.config_dir, *roots)) make_folder(options_.host.config_dir);
    auto guarded = protected_paths(policy, *roots, options_.host);
    if (!guarded) return tl::unexpected(guarded.error());
    ProfileInput input{policy, *roots, cwd, options_.host, {}, false, argv, {}, guarded->absent};
    input.closed = guarded->closed;
    input.open = guarded->open;
    return confine_backend(std::move(input), *guarded, stop);
  }

  void report_runner_failure() override {
    base::Lock lock(mutex_);
    verdict_.reset();
  }

  std::vector<std::string> describe(std::stop_token stop) override {
    if (!options_.runner_command.empty()) return {"custom runner " + options_.runner_command.front() + ": not probed"};
    auto verdict = settle(stop);
    if (!verdict) return {verdict.error().message};
    if (verdict->lines.empty()) return {unavailable_text(*verdict)};
    return verdict->lines;
  }

 private:
  // The cached verdict, or the result of probing. One probe at a time; whoever waits for it can be stopped.
  base::Result<Verdict> settle(std::stop_token stop) EXCLUDES(mutex_) {
    {
      std::stop_callback wake(stop, [this] { changed_.notify_all(); });
      base::Lock lock(mutex_);
      while (probing_ && !stop.stop_requested())
        changed_.wait_until(mutex_, std::chrono::steady_clock::now() + std::chrono::milliseconds(50));
      if (stop.stop_requested()) return base::fail(ErrorCode::cancelled, "stopped while waiting for the sandbox probe");
      if (verdict_) return *verdict_;
      probing_ = true;
    }
    auto verdict = probe_chain(stop);
    base::Lock lock(mutex_);
    probing_ = false;
    if (verdict) verdict_ = *verdict;
    changed_.notify_all();
    return verdict;
  }

  base::Result<Verdict> probe_chain(std::stop_token stop) const {
    Verdict verdict;
    const ProbeOptions probe{options_.call_init, options_.probe_timeout, options_.host};
    if (!options_.launcher.empty()) {
      auto report = run_captured(probe, {{options_.launcher, "--probe"}}, stop);
      if (!report && report.error().code == ErrorCode::cancelled) return tl::unexpected(report.error());
      if (report && report->exit_code == 0) {
        verdict.abi = landlock_abi();
        verdict.listener = report->out.find("\nlistener: works\n") != std::string::npos;
      }
    }
    for (const char* place : bwrap_places) {
      const auto found = canonical_path(place);
      if (!found || access(found->c_str(), X_OK) != 0) continue;
      verdict.bwrap = *found;
      break;
    }
    verdict.rights = rights_over_files();
    for (const std::string& name : options_.chain.empty() ? platform_chain(current_platform()) : options_.chain) {
      const auto backend = parse_backend(name);
      if (!backend) {
        verdict.lines.push_back(name + ": no such backend; there are bwrap, landlock and seatbelt");
        continue;
      }
      auto works = try_backend(*backend, verdict, probe, stop);
      if (!works && works.error().code != ErrorCode::cancelled && backend == Backend::bwrap &&
          !verdict.rights.empty()) {
        verdict.rights.clear();
        works = try_backend(*backend, verdict, probe, stop);
      }
      if (!works && works.error().code == ErrorCode::cancelled) return tl::unexpected(works.error());
      if (works) {
        verdict.backend = backend;
        const Enforcement holds = enforcement(*backend, verdict, Mode::workspace_write);
        verdict.lines.push_back(name + ": works" + (holds.coverage == Coverage::full ? "" : ", " + to_string(holds)) +
                                (root_is_bare(*backend, verdict) ? ", without root's rights over others' files" : "") +
                                (supervised(*backend, verdict) ? ", denials observed" : ", denials read from texts"));
        break;
      }
      verdict.lines.push_back(name + ": " + works.error().message);
    }
    return verdict;
  }

  base::Result<void> try_backend(Backend backend, const Verdict& found, const ProbeOptions& probe,
                                 std::stop_token stop) const {
    switch (backend) {
      case Backend::seatbelt:
        if (current_platform() != "darwin") return base::fail(ErrorCode::sandbox_unavailable, "exists on macOS only");
        return {};  // sole candidate on its platform: its own refusal to run is the fail-closed end
      case Backend::bwrap:
        if (found.bwrap.empty())
          return base::fail(ErrorCode::sandbox_unavailable, "not installed (looked in /usr/bin, /usr/local/bin, /bin)");
        break;
      case Backend::landlock:
        if (options_.launcher.empty())
          return base::fail(ErrorCode::sandbox_unavailable, "landlock-run is not installed");
        if (found.abi == 0) return base::fail(ErrorCode::sandbox_unavailable, "the kernel does not enforce Landlock");
        break;
    }
    return probe_backend(
        probe,
        [&](const Policy& policy, const std::vector<std::string>& roots, const std::string& cwd,
            const std::vector<std::string>& argv) {
          const ProfileInput input{policy, roots, cwd, probe.host, {}, false, argv, {}};
          return Launch{backend_argv(backend, found, input), supervision(backend, found, input),
                        in_user_namespace(backend, found)};
        },
        stop);
  }

  std::vector<std::string> backend_argv(Backend backend, const Verdict& verdict, ProfileInput input) const {
    input.supervised = supervised(backend, verdict);
    switch (backend) {
      case Backend::bwrap:
        if (launcher_inside(verdict)) input.launcher = options_.launcher;
        input.capabilities = verdict.rights;
        return bwrap_argv(verdict.bwrap, input);
      case Backend::landlock:
        input.launcher = options_.launcher;
        return landlock_argv(input);
      case Backend::seatbelt:
        return seatbelt_argv(input);
    }
    return {};
  }

  // ABI 1 forbids every rename between folders, inside the workspace too, which breaks git, npm and tar.
  static bool launcher_inside(const Verdict& verdict) { return verdict.abi >= 2; }

  static bool in_user_namespace(Backend backend, const Verdict& verdict) {
    return backend == Backend::bwrap && !verdict.rights.empty();
  }

  static bool root_is_bare(Backend backend, const Verdict& verdict) {
    return backend == Backend::bwrap && geteuid() == 0 && verdict.rights.empty();
  }

  static bool supervised(Backend backend, const Verdict& verdict) {
    return verdict.listener &&
           (backend == Backend::landlock || (backend == Backend::bwrap && launcher_inside(verdict)));
  }

  std::optional<base::Supervision> supervision(Backend backend, const Verdict& verdict,
                                               const ProfileInput& input) const {
    if (!supervised(backend, verdict)) return std::nullopt;
    base::Supervision rules;
    rules.roots = input.roots;
    if (backend == Backend::bwrap) rules.kept = input.read_only;  // Landlock alone does not hold them
    if (input.ask_connect) {
      rules.sockets = input.masked.folders;
      rules.sockets.insert(rules.sockets.end(), input.masked.files.begin(), input.masked.files.end());
    }
    if (auto state = state_below_roots(input.roots, options_.host)) rules.kept.push_back(*state);
    // A command that makes the folder above itself, as `git init` does, must be able to make such names too.
    std::vector<std::string> names = input.absent;
    // What Landlock alone cannot hold, the config beside it, needs no half of this.
    if (backend == Backend::bwrap) names.insert(names.end(), input.closed.begin(), input.closed.end());
    for (const std::string& path : names)
      if (access(path.substr(0, path.rfind('/')).c_str(), F_OK) == 0) rules.absent.push_back(path);
    rules.open = input.open;
    rules.quiet = {"/dev/tty"};  // a shell tries its terminal at every start
    for (const std::string& device : writable_devices(input.policy.mode)) rules.quiet.push_back(device);
    if (backend == Backend::bwrap) {
      rules.own = {"/dev/pts", "/dev/shm"};
      rules.quiet.insert(rules.quiet.end(), {"/dev/pts", "/dev/ptmx", "/dev/shm"});
    }
    return rules;
  }

  base::Result<ConfinedArgv> confine_backend(ProfileInput input, const Protected& guarded, std::stop_token stop) {
    const auto find_paths = [&](bool capabilities) {
      input.read_only = read_only_paths(guarded, input.roots, capabilities);
      input.masked = control_sockets(input.policy.sockets, options_.host.socket_variables, capabilities);
    };
    if (!options_.runner_command.empty()) {
      find_paths(false);
      return confine_with_custom_runner(input);
    }
    auto verdict = settle(stop);
    if (!verdict) return tl::unexpected(verdict.error());
    if (!verdict->backend) return base::fail(ErrorCode::sandbox_unavailable, unavailable_text(*verdict));
    const bool alone = verdict->backend == Backend::landlock;
    find_paths(alone || in_user_namespace(*verdict->backend, *verdict));
    input.ask_connect = alone && supervised(Backend::landlock, *verdict) && !input.masked.none();
    auto confined = confine_with(*verdict, input);
    if (confined) limit_to(*verdict, input, guarded, confined->enforcement);
    return confined;
  }

  // What the backend leaves open of this one policy.
  void limit_to(const Verdict& verdict, const ProfileInput& input, const Protected& guarded,
                Enforcement& enforcement) const {
    std::vector<std::string>& open = enforcement.not_covered;
    const bool mounts = verdict.backend == Backend::bwrap;
    if (verdict.backend == Backend::landlock && input.policy.mode == Mode::workspace_write &&
        (!input.policy.protect || !guarded.kept.empty()))
      open.emplace_back("protected paths not covered");
    if (mounts && !guarded.links.empty())
      open.push_back("a protected path is a link: " + guarded.links.front() +
                     (guarded.links.size() > 1 ? " and more" : ""));
    // Names outside the file system are kept apart by Landlock from ABI 6 on.
    const ControlSockets& sockets = input.masked;
    const bool named = !mounts && !sockets.files.empty();
    if (!input.ask_connect && (named || (sockets.abstract && verdict.abi < 6)))
      open.emplace_back("control sockets reachable");
    if (!open.empty()) enforcement.coverage = Coverage::partial;
  }

  static Enforcement enforcement(Backend backend, const Verdict& verdict, Mode mode) {
    Enforcement result;
    switch (backend) {
      case Backend::bwrap:
        if (!launcher_inside(verdict)) result.not_covered.emplace_back("writes to existing FIFOs not covered");
        break;
      case Backend::landlock:
        if (!supervised(backend, verdict) && mode != Mode::read_only)
          result.not_covered.emplace_back("metadata changes not covered");
        if (verdict.abi < 3) result.not_covered.emplace_back("truncation not covered");
        if (verdict.abi < 5) result.not_covered.emplace_back("device controls not covered");
        break;
      case Backend::seatbelt:
        break;
    }
    result.coverage = result.not_covered.empty() ? Coverage::full : Coverage::partial;
    return result;
  }

  base::Result<ConfinedArgv> confine_with(const Verdict& verdict, const ProfileInput& input) const {
    const Backend backend = *verdict.backend;
    ConfinedArgv confined;
    switch (backend) {
      case Backend::bwrap:
        confined.denial_signatures = {{"read-only file system", false}};
        if (launcher_inside(verdict)) confined.denial_signatures.push_back({"permission denied", true});
        confined.runner_failure_rules = {{{}, {}, {"bwrap: "}}};
        confined.status = launcher_inside(verdict) ? StatusChannel::launcher : StatusChannel::bwrap;
        break;
      case Backend::landlock:
        if (auto state = state_below_roots(input.roots, input.host)) {
          return base::fail(ErrorCode::sandbox_unavailable,
                            "the agent's state folder " + *state +
                                " lies below a writable folder and Landlock alone cannot "
                                "protect it: set XDG_STATE_HOME to a folder outside the workspace and `writable`");
        }
        if (input.policy.protect && !input.policy.protect->empty() && input.policy.mode == Mode::workspace_write) {
          return base::fail(ErrorCode::sandbox_unavailable,
                            "`protect` needs bwrap: Landlock alone cannot keep paths inside a writable root read-only");
        }
        for (const std::string& path : options_.host.own_files) {
          const bool workspace = !input.roots.empty() && path_within(path, input.roots.front());
          if (!workspace && !below_any(path, input.policy.writable)) continue;
          return base::fail(ErrorCode::sandbox_unavailable,
                            "the agent's own file " + path + " lies in " +
                                (workspace ? "the workspace" : "a folder of `writable`") +
                                " and Landlock alone cannot protect it: "
                                "install the agent elsewhere, or install bubblewrap");
        }
        confined.denial_signatures = {{"permission denied", false}};
        confined.runner_failure_rules = {{{125}, {older_abi_notice}, {"landlock-run:"}}};
        confined.status = StatusChannel::launcher;
        break;
      case Backend::seatbelt:
        confined.denial_signatures = {{"operation not permitted", false}};
        confined.runner_failure_rules = {{{}, {}, {"sandbox-exec: "}}};
        confined.status = StatusChannel::none;
        break;
    }
    confined.roots = input.roots;
    // What bwrap holds read-only in the folder of all worktrees decides where other worktrees look for hooks.
    if (backend == Backend::landlock && !input.policy.worktree.empty())
      std::replace(confined.roots.begin(), confined.roots.end(), worktrees_folder(input.policy.worktree),
                   input.policy.worktree);
    ProfileInput own = input;
    own.roots = confined.roots;
    confined.argv = backend_argv(backend, verdict, own);
    if (backend == Backend::bwrap && confined.argv.size() > most_bwrap_arguments)
      return base::fail(ErrorCode::command_start, "the command has more arguments than bwrap takes (" +
                                                      std::to_string(most_bwrap_arguments) +
                                                      "); write them to a file and run that");
    confined.backend = backend_name(backend);
    confined.supervision = supervision(backend, verdict, own);
    confined.user_namespace = in_user_namespace(backend, verdict);
    confined.enforcement = enforcement(backend, verdict, input.policy.mode);
    return confined;
  }

  // The operator's word stands in for the probe: bwrap's arguments, no inner launcher, text rules.
  ConfinedArgv confine_with_custom_runner(const ProfileInput& input) const {
    ConfinedArgv confined;
    std::vector<std::string> profile = bwrap_argv(options_.runner_command.front(), input);
    const auto status = std::find(profile.begin(), profile.end(), "--json-status-fd");
    profile.erase(status, status + 2);
    confined.argv = options_.runner_command;
    confined.argv.insert(confined.argv.end(), profile.begin() + 1, profile.end());
    confined.backend = "custom";
    confined.enforcement = {Coverage::partial, {"the operator's own runner, not probed"}};
    confined.denial_signatures = {{"read-only file system", false}, {"permission denied", false}};
    confined.runner_failure_rules = {{{}, {older_abi_notice}, options_.runner_failure_signatures}};
    confined.roots = input.roots;
    return confined;
  }

  // A path that a command cannot reach, with root's capabilities or without, is held by the folder that stops it: bwrap cannot mount on
  // the path itself, and the command could open the folder and then reach it.
  static std::vector<std::string> read_only_paths(const Protected& guarded, const std::vector<std::string>& roots,
                                                  bool capabilities) {
    std::vector<std::string> paths;
    for (const std::string& path : guarded.kept) {
      const std::string closed = first_closed_folder(path, capabilities);
      const std::string& held = closed.empty() ? path : closed;
      const bool root = std::any_of(roots.begin(), roots.end(), [&](const auto& r) { return path_within(r, held); });
      if (!root && std::find(paths.begin(), paths.end(), held) == paths.end()) paths.push_back(held);
    }
    return paths;
  }

  static bool below_any(const std::string& path, const std::vector<std::string>& roots) {
    return !path.empty() &&
           std::any_of(roots.begin(), roots.end(), [&](const auto& root) { return path_within(path, root); });
  }

  static void make_folder(const std::string& folder) {
    for (std::size_t end = folder.find('/', 1);; end = folder.find('/', end + 1)) {
      mkdir(folder.substr(0, end).c_str(), 0700);
      if (end == std::string::npos) return;
    }
  }

  std::string unavailable_text(const Verdict& verdict) const {
    std::string text = options_.chain.empty() ? "no sandbox backend works on this host"
                                              : "none of the sandbox backends in `chain` works on this host";
    text += ", and the command was not run";
    if (verdict.lines.empty()) return text + " (this platform has none)";
    for (const std::string& line : verdict.lines) text += "; " + line;
    return text;
  }

  const LocalSandboxOptions options_;
  base::Mutex mutex_;
  base::CondVar changed_;
  bool probing_ GUARDED_BY(mutex_) = false;
  std::optional<Verdict> verdict_ GUARDED_BY(mutex_);
};

}  // namespace

std::vector<std::string> platform_chain(std::string_view platform) {
  if (platform == "linux") return {"bwrap", "landlock"};
  if (platform == "darwin") return {"seatbelt"};
  return {};
}

std::string_view current_platform() {
#if defined(__linux__)
  return "linux";
#elif defined(__APPLE__)
  return "darwin";
#else
  return "other";
#endif
}

std::string to_string(const Enforcement& enforcement) {
  if (enforcement.coverage == Coverage::full) return "full";
  std::string text = "partial (";
  for (std::size_t i = 0; i < enforcement.not_covered.size(); ++i)
    text += (i == 0 ? "" : "; ") + enforcement.not_covered[i];
  return text + ")";
}

std::unique_ptr<Sandbox> make_local_sandbox(LocalSandboxOptions options) {
  return std::make_unique<LocalSandbox>(std::move(options));
}

}  // namespace sandbox

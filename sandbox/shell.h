// Runs one shell command to its end under a policy: exactly `bash -c command`, no state between calls. Confining when
// it was given a Sandbox. All facts of the outcome are independent fields. Thread-safe; a call blocks its thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/child.h"
#include "base/error.h"
#include "sandbox/sandbox.h"

namespace sandbox {

inline constexpr std::size_t shell_output_limit = 64'000;  // bytes kept per stream, head and tail
inline constexpr std::size_t shell_live_limit = 256 * 1024;
inline constexpr std::uint64_t spill_call_limit = 64ull << 20;
inline constexpr std::uint64_t spill_session_limit = 512ull << 20;

struct ShellOptions {
  std::chrono::milliseconds timeout{120'000};
  std::chrono::milliseconds max_timeout{600'000};
  std::vector<std::string> pass_env;   // names let through although they look like secrets
  std::vector<std::string> strip_env;  // the routes' own key variables: always removed
  Host host;
  std::string call_init;
};

struct ShellRequest {
  std::string command;
  std::string workdir;                               // absolute
  Policy policy;                                     // mandatory
  std::optional<std::chrono::milliseconds> timeout;  // clamped to max_timeout
  std::string spill_dir;                             // where the full output goes when it is cut; "" = nowhere
  // Live output, both streams, cleaned, by the line; at most shell_live_limit bytes a call. May be empty; may block.
  std::function<void(std::string_view)> on_output;
};

struct ShellOutcome {
  std::string out, err;          // cleaned text, head and tail kept
  std::optional<int> exit_code;  // absent when killed by a signal
  std::string signal;            // "SIGKILL", "" when none
  bool timed_out = false;
  std::chrono::milliseconds timeout{0};  // the limit that was in force
  bool cancelled = false;
  bool denied = false;
  std::string denial_source;               // "observed", or "text" where nobody could watch
  std::vector<base::Denial> denials;       // observed
  bool runner_failed = false;              // the command did not run (text rules: is taken not to have run)
  std::string runner_failure;              // what the runner said
  Mode mode = Mode::danger_full_access;    // effective
  std::optional<Enforcement> enforcement;  // absent when unconfined
  std::string backend;
  bool truncated = false;
  std::string spill_file;        // "" when none
  std::uint64_t spill_lost = 0;  // bytes the spill file could not hold
  int stragglers_killed = 0;
  bool pipe_held_open = false;  // a background process kept the output open; we stopped waiting for it
  std::chrono::milliseconds duration{0};
};

class ShellExecutor {
 public:
  // sandbox null: an unconfined executor (bash-local); every mode runs as it is.
  ShellExecutor(ShellOptions options, std::shared_ptr<Sandbox> sandbox);

  bool confines() const { return sandbox_ != nullptr; }
  const ShellOptions& options() const { return options_; }

  // Errors (nothing of the command ran): sandbox_unavailable (no backend, or its runner cannot be started),
  // command_start (bad workdir, bash missing, command too long), cancelled (stopped before start). Everything else is
  // an outcome, a runner that started and failed included: runner_failed, to be reported as SANDBOX_UNAVAILABLE.
  base::Result<ShellOutcome> run(const ShellRequest& request, std::stop_token stop);

  // The same start-up for one argv with the caller's stdio, for `acp-agent confine`. Returns the exit code a shell
  // would show (128+n for signals).
  base::Result<int> run_attached(const std::vector<std::string>& argv, const std::string& cwd, const Policy& policy,
                                 std::stop_token stop);

  // From now on nothing starts, and running calls are killed at once instead of being given their grace. Any thread.
  void shutdown() { shutdown_.request_stop(); }

  // The environment a child gets for this policy (contract.md 6). Exposed for tests.
  std::vector<std::pair<std::string, std::string>> child_environment(const Policy& policy,
                                                                     const std::vector<std::string>& roots) const;

 private:
  ShellOptions options_;
  std::shared_ptr<Sandbox> sandbox_;
  std::stop_source shutdown_;
};

}  // namespace sandbox

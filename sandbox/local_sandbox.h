// The product's Sandbox: this platform's chain of backends, or an operator's own runner. Linux: bwrap (with
// landlock-run inside where the kernel has Landlock), then landlock-run; each probed by running its real profile and
// seeing a forbidden write fail and an allowed one work. macOS: Seatbelt, sole candidate, not probed. Elsewhere: empty
// chain, fails closed. Thread-safe; one probe at a time; the verdict is cached until report_runner_failure().
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/sandbox.h"

namespace sandbox {

struct LocalSandboxOptions {
  std::vector<std::string> chain;                      // empty: the platform's; names "bwrap", "landlock", "seatbelt"
  std::vector<std::string> runner_command;             // an operator's bwrap-compatible runner: skips chain and probe
  std::vector<std::string> runner_failure_signatures;  // required with runner_command, single non-empty lines
  std::chrono::milliseconds probe_timeout{5000};
  Host host;
  std::string launcher;   // landlock-run, absolute; "" when it is not installed (then no Landlock)
  std::string call_init;  // absolute
};

// The chain of a platform ("linux", "darwin", anything else: empty).
std::vector<std::string> platform_chain(std::string_view platform);
std::string_view current_platform();

std::unique_ptr<Sandbox> make_local_sandbox(LocalSandboxOptions options);

// The profiles, as functions of their input (and of which device nodes exist), so that tests compare each with
// writable_roots().
struct ProfileInput {
  Policy policy;
  std::vector<std::string> roots;
  std::string cwd;
  Host host;
  std::string launcher;     // "" = no inner launcher
  bool supervised = false;  // the launcher's filter has a listener
  std::vector<std::string> argv;
  // Existing canonical paths that stay read-only although they lie below a root: protected paths, the agent's helpers.
  // The state folder needs no entry. Not Landlock, which cannot take away what a rule above it grants.
  std::vector<std::string> read_only{};
  std::vector<std::string> absent{};          // names that must not be made
  std::vector<std::string> closed{}, open{};  // as in Protected
  // bwrap: what root keeps, in a user namespace that is there already and has all ids. None: bwrap makes its own, with
  // one id.
  std::vector<std::string> capabilities{};
  ControlSockets masked{};   // on bwrap by mounts
  bool ask_connect = false;  // Landlock alone: the supervisor keeps them out of reach
};
// Of the host's /dev, what a command may write to.
std::vector<std::string> writable_devices(Mode mode);
std::vector<std::string> bwrap_argv(const std::string& bwrap, const ProfileInput& input);
std::vector<std::string> landlock_argv(const ProfileInput& input);
std::string seatbelt_profile(const ProfileInput& input);
std::vector<std::string> seatbelt_argv(const ProfileInput& input);

}  // namespace sandbox

// Finds out whether a backend really confines on this host: its real profile is run, a forbidden write must fail and an
// allowed one must work, both looked at from outside. Blocks up to the timeout; stops within it. Any thread.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/child.h"
#include "base/error.h"
#include "sandbox/policy.h"

namespace sandbox {

struct ProbeOptions {
  std::string call_init;
  std::chrono::milliseconds timeout{5000};
  Host host;
};

struct Launch {
  std::vector<std::string> argv;
  std::optional<base::Supervision> supervision{};
  bool user_namespace = false;
};

// Wraps a command under a policy the way the backend would for a real call.
using Wrap = std::function<Launch(const Policy& policy, const std::vector<std::string>& roots, const std::string& cwd,
                                  const std::vector<std::string>& argv)>;

// Success: it confines. Failure: why not, in the backend's own words; cancelled when stopped.
base::Result<void> probe_backend(const ProbeOptions& options, const Wrap& wrap, std::stop_token stop);

// The Landlock ABI of the running kernel; 0 when it has none or it is switched off.
int landlock_abi();

// Of the capabilities for files and ids (capabilities(7)), by name, those that this process has and can leave to a
// command in a user namespace of its own, which needs the right to map all its ids there. None for an ordinary user,
// and where root's is the only id.
std::vector<std::string> rights_over_files();

struct Captured {
  int exit_code = -1;  // -1: killed, timed out or not started
  std::string out, err;
};
base::Result<Captured> run_captured(const ProbeOptions& options, const Launch& launch, std::stop_token stop);

}  // namespace sandbox

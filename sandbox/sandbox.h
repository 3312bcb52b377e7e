// The seam: argv in, confined argv out. It runs nothing; there is no way to get the argv back unwrapped. No usable
// backend: SANDBOX_UNAVAILABLE, and nothing runs. danger-full-access never comes here (the grant is the authority).
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/child.h"
#include "base/error.h"
#include "sandbox/policy.h"

namespace sandbox {

enum class Coverage { full, partial };

struct Enforcement {
  Coverage coverage = Coverage::full;
  std::vector<std::string> not_covered;  // in words: "metadata changes not covered"
};
std::string to_string(const Enforcement& enforcement);  // "full" or "partial (metadata changes not covered)"

// A stderr line that means "a file effect was denied" in one backend's dialect.
struct DenialSignature {
  std::string text;                 // matched case-insensitively
  bool only_outside_roots = false;  // counts only where the line names an absolute path outside writable_roots
};

// In-band evidence that the runner failed, for runners without a status pipe: exit code gate (empty: any), whole
// informational lines removed, then a fatal signature in a remaining line, case-insensitive.
struct RunnerFailureRule {
  std::vector<int> exit_codes;
  std::vector<std::string> informational_lines;
  std::vector<std::string> signatures;
};

// How "did it run?" is decided (contract.md 1).
enum class StatusChannel {
  none,      // text rules only
  launcher,  // landlock-run on descriptor 3: R, F<step> <errno>
  bwrap,     // --json-status-fd 3, no inner launcher
};

struct ConfinedArgv {
  std::vector<std::string> argv;
  std::string backend;  // "bwrap", "landlock", "seatbelt", "custom"
  Enforcement enforcement;
  std::vector<DenialSignature> denial_signatures;
  std::vector<RunnerFailureRule> runner_failure_rules;
  StatusChannel status = StatusChannel::none;
  std::vector<std::string> roots;  // writable_roots of the policy, for only_outside_roots and TMPDIR
  // Present: denials are observed by call-init, and the signatures above are not used.
  std::optional<base::Supervision> supervision;
  bool user_namespace = false;  // to be started in one of its own with all ids
};

class Sandbox {
 public:
  virtual ~Sandbox() = default;
  // `cwd`: canonical working directory of the command. May probe (honours stop); thread-safe.
  virtual base::Result<ConfinedArgv> confine(const std::vector<std::string>& argv, const Policy& policy,
                                             const std::string& cwd, std::stop_token stop) = 0;
  // The backend failed to run a command: drop the cached verdict so that the next call probes once more.
  virtual void report_runner_failure() = 0;
  // One line per backend for doctor and errors: "bwrap: works, full", "landlock: ...". Probes if needed.
  virtual std::vector<std::string> describe(std::stop_token stop) = 0;
};

}  // namespace sandbox

// What a finished command's traces mean: did it run at all (contract.md 1), and was a file effect denied. Both are
// judged from the backend's own channel and dialect, never from a union of dialects. No I/O but canonical_target() on
// paths that a stderr line names. One thread per object.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/sandbox.h"

namespace sandbox {

struct RunEvidence {
  std::string_view status;       // everything the status pipe gave until its end
  std::optional<int> exit_code;  // absent when killed by a signal
  int signal = 0;
  bool ended_by_us = false;  // we timed it out, cancelled or killed it: then it is never a runner failure
  std::string_view err;      // kept stderr
};

// The runner's words when the runner, not the command, failed.
std::optional<std::string> find_runner_failure(const ConfinedArgv& confined, const RunEvidence& evidence);

// Looks for a denial signature in stderr while it streams by, so that a denial in the part of a long stderr that is not
// kept is still seen. Bounded memory: a line is judged by its first 8 KiB.
class DenialScanner {
 public:
  // `shell`: the path bash was started with; its "path: line N:" prefix is no path the error is about.
  DenialScanner(const ConfinedArgv& confined, std::string shell);
  void append(std::string_view bytes);
  bool finish();  // judges the unfinished last line too

 private:
  void judge(std::string_view line);

  std::vector<DenialSignature> signatures_;
  std::vector<std::string> roots_;
  std::string shell_;
  std::string line_;
  bool found_ = false;
};

// Absolute paths a diagnostic line is about, as written. Exposed for tests.
std::vector<std::string> paths_in_line(std::string_view line, std::string_view shell);

}  // namespace sandbox

// How `run` ends, as a number scripts can act on (contract.md 8). Pure.
#pragma once

#include <optional>
#include <string>

namespace cli {

namespace exit_status {
inline constexpr int done = 0, failed = 1, usage = 2, refused = 3, limit = 4, sandbox_unavailable = 5, retry_later = 75,
                     interrupted = 130, terminated = 143;
// As a shell answers a command that cannot be started.
inline constexpr int not_executable = 126, no_program = 127;
}  // namespace exit_status

struct RunEnd {
  int signal = 0;                    // SIGINT or SIGTERM ended it
  bool error = false;                // the prompt was answered with an error
  bool retryable = false;            // and it may work later
  std::string stop_reason;           // else: end_turn, max_tokens, max_turn_requests, refusal, cancelled
  bool sandbox_unavailable = false;  // the last call was SANDBOX_UNAVAILABLE
  bool denied = false;               // the last denied or not-granted call had no later success
};

int exit_code(const RunEnd& end);

}  // namespace cli

#include "cli/exit_code.h"

#include <csignal>

namespace cli {

int exit_code(const RunEnd& end) {
  if (end.signal == SIGINT) return exit_status::interrupted;
  if (end.signal != 0) return 128 + end.signal;
  if (end.error) return end.retryable ? exit_status::retry_later : exit_status::failed;
  if (end.stop_reason == "max_tokens" || end.stop_reason == "max_turn_requests") return exit_status::limit;
  if (end.sandbox_unavailable) return exit_status::sandbox_unavailable;
  if (end.denied || end.stop_reason == "refusal") return exit_status::refused;
  if (end.stop_reason == "end_turn") return exit_status::done;
  return exit_status::failed;  // cancelled by nobody here, or a reason this client does not know
}

}  // namespace cli

// One request of a step with its retries: streams deltas, logs llm/retry and assistant/aborted, commits nothing.
// On the driver thread.
#pragma once

#include <optional>
#include <string>

#include "agent/turn.h"

namespace agent {

struct ModelAnswer {
  enum class Kind {
    answered,     // completion is whole
    interrupted,  // stopped while the request was out: `completion.message` is what had been shown, maybe nothing
    not_sent,     // stopped while no request was out
    failed,
  } kind = Kind::not_sent;
  std::string message_id;
  llm::Completion completion;
  base::Error error;  // failed
  bool retryable = false;
};

inline constexpr std::int64_t retry_after_limit_ms = 60'000;  // a server that asks for more has failed for this turn

// Error: the log cannot be written.
base::Result<ModelAnswer> ask_model(const TurnSetup& setup, const llm::Route& route, const llm::RequestHeader& header);

}  // namespace agent

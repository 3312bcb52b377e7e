#include "acp/answers.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace {

using agent::TurnEndReason;

std::string reason(const agent::PromptEnd& end) {
  const auto answer = acp::prompt_answer(end);
  return answer ? (**answer)["stopReason"].get<std::string>() : "error " + std::to_string(answer.error().code);
}

agent::PromptEnd ended(TurnEndReason reason, std::optional<agent::AbortCause> cause = std::nullopt) {
  agent::PromptEnd end;
  end.reason = reason;
  end.cause = cause;
  return end;
}

agent::PromptEnd failed(base::ErrorCode code) {
  agent::PromptEnd end = ended(TurnEndReason::error);
  end.error = base::Error{code, "what happened", "HTTP 503"};
  end.retryable = true;
  return end;
}

TEST_CASE("Every end of a turn has its answer") {
  CHECK(reason(ended(TurnEndReason::completed)) == "end_turn");
  CHECK(reason(ended(TurnEndReason::max_tokens)) == "max_tokens");
  CHECK(reason(ended(TurnEndReason::max_steps)) == "max_turn_requests");
  CHECK(reason(ended(TurnEndReason::blocked)) == "refusal");
  CHECK(reason(ended(TurnEndReason::aborted)) == "cancelled");
  CHECK(reason(ended(TurnEndReason::aborted, agent::AbortCause::user)) == "cancelled");
  CHECK(reason(ended(TurnEndReason::aborted, agent::AbortCause::hook)) == "cancelled");
  CHECK(reason(ended(TurnEndReason::aborted, agent::AbortCause::parent)) == "cancelled");
  CHECK(reason(ended(TurnEndReason::aborted, agent::AbortCause::disposed)) == "error -32603");
  CHECK(reason(ended(TurnEndReason::interrupted)) == "error -32603");
  CHECK(reason(ended(TurnEndReason::error)) == "error -32603");
  CHECK(reason(failed(base::ErrorCode::content_filter)) == "refusal");
  CHECK(reason(failed(base::ErrorCode::auth)) == "error -32000");
  CHECK(reason(failed(base::ErrorCode::server)) == "error -32603");
}

TEST_CASE("A failed turn says why, of what kind, and whether to try again") {
  const auto answer = acp::prompt_answer(failed(base::ErrorCode::server));
  REQUIRE(!answer);
  CHECK(answer.error().message == "what happened");
  CHECK(*answer.error().data ==
        base::Json{{"details", "what happened\nHTTP 503"}, {"kind", "server"}, {"retryable", true}});
}

TEST_CASE("What headless needs to know rides on the answer") {
  agent::PromptEnd end;
  end.denied = true;
  end.escalation = "rejected";
  end.sandbox_unavailable = true;
  const auto answer = acp::prompt_answer(end);
  REQUIRE(answer);
  CHECK((**answer)["_meta"]["acp_agent"] ==
        base::Json{{"denied", true}, {"escalation", "rejected"}, {"sandbox_unavailable", true}});
}

TEST_CASE("Errors of a request have the codes clients act on") {
  const auto code = [](base::ErrorCode kind) { return acp::from_error({kind, "x", ""}).code; };
  CHECK(code(base::ErrorCode::auth) == -32000);
  CHECK(code(base::ErrorCode::not_found) == -32002);
  CHECK(code(base::ErrorCode::invalid_argument) == -32602);
  CHECK(code(base::ErrorCode::corrupt) == -32603);
  CHECK(code(base::ErrorCode::busy) == -32603);
}

}  // namespace

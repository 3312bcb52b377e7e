#include "acp/answers.h"

#include <nlohmann/json.hpp>

namespace acp {
namespace {

namespace code = base::rpc_code;

std::string details(const base::Error& error) {
  if (error.detail.empty()) return error.message;
  return error.message.empty() ? error.detail : error.message + "\n" + error.detail;
}

base::RpcError turn_error(int number, const base::Error& error, bool retryable) {
  base::Json data{{"details", details(error)}, {"kind", base::error_name(error.code)}, {"retryable", retryable}};
  return {number, error.message, base::share(std::move(data))};
}

}  // namespace

base::RpcError rpc_error(int number, std::string message) { return {number, std::move(message), nullptr}; }

base::RpcError invalid_params(std::string message) { return rpc_error(code::invalid_params, std::move(message)); }

base::RpcError from_error(const base::Error& error) {
  int number = code::internal_error;
  if (error.code == base::ErrorCode::auth) number = code::auth_required;
  if (error.code == base::ErrorCode::not_found) number = code::not_found;
  if (error.code == base::ErrorCode::invalid_argument) number = code::invalid_params;
  return {number, error.message,
          base::share(base::Json{{"details", details(error)}, {"kind", base::error_name(error.code)}})};
}

tl::expected<base::JsonPtr, base::RpcError> prompt_answer(const agent::PromptEnd& end) {
  const char* stop_reason = nullptr;
  switch (end.reason) {
    case agent::TurnEndReason::completed:
      stop_reason = "end_turn";
      break;
    case agent::TurnEndReason::max_tokens:
      stop_reason = "max_tokens";
      break;
    case agent::TurnEndReason::max_steps:
      stop_reason = "max_turn_requests";
      break;
    case agent::TurnEndReason::blocked:
      stop_reason = "refusal";
      break;
    case agent::TurnEndReason::aborted:
      if (end.cause != agent::AbortCause::disposed) stop_reason = "cancelled";
      break;
    case agent::TurnEndReason::error:
      if (end.error && end.error->code == base::ErrorCode::content_filter) stop_reason = "refusal";
      break;
    case agent::TurnEndReason::interrupted:
      break;  // written on load only; here it is a fault of ours
  }
  if (stop_reason) {
    return base::share(base::Json{{"stopReason", stop_reason},
                                  {"_meta",
                                   {{"acp_agent",
                                     {{"denied", end.denied},
                                      {"escalation", end.escalation},
                                      {"sandbox_unavailable", end.sandbox_unavailable}}}}}});
  }
  if (end.error) {
    const bool auth = end.error->code == base::ErrorCode::auth;
    return tl::unexpected(turn_error(auth ? code::auth_required : code::internal_error, *end.error, end.retryable));
  }
  const base::Error fallback = end.reason == agent::TurnEndReason::aborted
                                   ? base::Error{base::ErrorCode::cancelled, "the agent is shutting down", {}}
                                   : base::Error{base::ErrorCode::internal, "the turn ended without a reason", {}};
  return tl::unexpected(turn_error(code::internal_error, fallback, end.retryable));
}

}  // namespace acp

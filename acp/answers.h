// How our errors and the end of a prompt become JSON-RPC answers (contract.md 5). Pure; any thread.
#pragma once

#include <string>

#include "agent/agent.h"
#include "base/error.h"
#include "base/json.h"
#include "base/rpc_peer.h"

namespace acp {

base::RpcError rpc_error(int code, std::string message);
base::RpcError invalid_params(std::string message);

// auth: -32000, not_found: -32002, invalid_argument: -32602, else -32603; data {details, kind}.
base::RpcError from_error(const base::Error& error);

// The result {stopReason, _meta: {acp_agent: {denied, escalation, sandbox_unavailable}}}, or the error with data
// {details, kind, retryable}.
tl::expected<base::JsonPtr, base::RpcError> prompt_answer(const agent::PromptEnd& end);

}  // namespace acp

// ACP content blocks and agent::ContentBlock, both ways. Pure; any thread.
#pragma once

#include <functional>
#include <vector>

#include "agent/event.h"
#include "base/json.h"
#include "base/rpc_peer.h"

namespace acp {

// The `prompt` member of session/prompt. Fails with -32602 naming the path ("prompt[1].text") of what is wrong or not
// advertised. Text, resource links and embedded resources are taken; of a binary resource only its existence is told.
tl::expected<std::vector<agent::ContentBlock>, base::RpcError> read_prompt(const base::Json* prompt);

// One or more ACP blocks for a block of ours: long text is given in pieces that fit a line.
void write_blocks(const agent::ContentBlock& block, const std::function<void(base::Json&&)>& emit);

}  // namespace acp

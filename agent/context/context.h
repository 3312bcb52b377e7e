// The runtime context: one user-role message that states the current policies (contract.md 3). Composed from the
// sections of the composition, compared before every step with what the conversation already says, and appended whole
// when absent or different; never rewritten, never in the system prompt. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/services.h"
#include "agent/session.h"

namespace agent {

// What the two policies are, or that there is none. They copy what they need, so `services` may move afterwards; mount
// policy, approval, shell, fs and host first.
ContextSection sandbox_policy_section(const Services& services);
ContextSection approval_policy_section(const Services& services);

using ContextTexts = std::vector<std::pair<std::string, std::string>>;  // name, text

ContextTexts compose_context(const Services& services, const Session& session);
event::UserMessage context_message(const ContextTexts& sections);

// The message to append before this step, or nothing when `retained` (the newest context message of the conversation)
// already says the same.
std::optional<event::UserMessage> reconcile_context(const ContextTexts& wanted,
                                                    const std::optional<event::UserMessage>& retained);

}  // namespace agent

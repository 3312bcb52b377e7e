// The bash tool: one command through the shell executor, its outcome as text for the model and as facts.
#pragma once

#include <memory>

#include "agent/approval.h"
#include "agent/tool.h"
#include "sandbox/shell.h"

namespace tools {

// `approval` may be null: then every escalation is refused.
std::shared_ptr<agent::Tool> make_bash_tool(std::shared_ptr<sandbox::ShellExecutor> shell,
                                            std::shared_ptr<agent::ApprovalService> approval);

}  // namespace tools

// Runs the calls of one answer: calls that only read run together, others are barriers, results are logged in call
// order, and each call gets exactly one (contract.md 5). On the driver thread; reads on threads of their own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/fold.h"
#include "agent/turn.h"

namespace agent {

// What the calls of a turn add up to for PromptEnd.
class TurnFacts {
 public:
  void add(const llm::ToolCall& call, const event::ToolResult& result);
  void write_to(PromptEnd& end) const;

 private:
  struct Denied {
    SameCall call;
    std::string tool, key;
  };
  std::optional<Denied> denied_;
  std::string escalation_;
  bool sandbox_unavailable_ = false;
};

// Error: the log cannot be written.
base::Result<void> run_calls(const TurnSetup& setup, const std::vector<llm::ToolCall>& calls, TurnFacts& facts);
// None of them is run; each gets a result that says why.
base::Result<void> refuse_calls(Session& session, const std::vector<llm::ToolCall>& calls, std::size_t from,
                                const std::string& why, TurnFacts& facts);

}  // namespace agent

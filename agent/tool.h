// What the model can call. A tool is one file in tools/, listed in tools/plugins.cc; the loop knows none of them.
// Thread-safe: one instance serves every session, and calls that only read run at the same time.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "agent/event.h"
#include "agent/session.h"
#include "base/json.h"
#include "llm/message.h"
#include "sandbox/policy.h"

namespace agent {

// Facts of the composition that shape schemas. A schema depends on nothing else.
struct Capabilities {
  bool shell_confines = false;
  bool fs_confines = false;
  bool jobs = false;
};

// How a client shows a call: a pure function of tool/call, tool/result and the composition, live and on replay alike.
struct Location {
  std::string path;
  std::optional<int> line;
};
struct Diff {
  std::string path;
  std::optional<std::string> old_text;
  std::string new_text;
};
struct CallView {
  std::string title;
  std::string kind;  // ACP ToolKind: read edit delete move search execute think fetch switch_mode other
  std::vector<Location> locations;
  std::vector<Diff> diffs;          // result only
  std::optional<std::string> text;  // result only: bounded text content
  base::JsonPtr raw_output;         // result only: an object
};

// Outcome of a call. `facts` members with a meaning outside the tool: denied (bool), denied_key (string: canonical
// path, or command + "\n" + workdir), sandbox_unavailable (bool), escalated (bool), escalation (outcome text when one
// was asked or refused), mode (effective mode), aborted (bool: stopped while it ran; the loop adds it to an error
// outcome that came after a stop), exit_code (int: 0 makes a denied step one that did not matter to the turn's end).
// The rest is the tool's own. A successful outcome carries denied_key too, as it may settle an earlier denial; the loop
// logs the key only where it says something.
struct ToolOutcome {
  std::string content;
  bool is_error = false;
  base::JsonPtr facts;  // object or null
};

class ApprovalService;

struct ToolContext {
  Session& session;
  const std::string& call_id;
  sandbox::Policy policy;  // resolved for this call without any grant
  std::stop_token stop;
};

class Tool {
 public:
  virtual ~Tool() = default;
  virtual llm::ToolSpec spec(const Capabilities& capabilities) const = 0;  // pure
  virtual bool reads_only(const base::Json& arguments) const = 0;          // may run beside other reads
  virtual CallView view_call(const base::Json& arguments, const std::string& cwd) const = 0;
  virtual CallView view_result(const base::Json& arguments, const event::ToolResult& result,
                               const std::string& cwd) const = 0;
  // Arguments were checked against the very schema that was sent. Must return soon after context.stop.
  virtual ToolOutcome run(const base::Json& arguments, ToolContext& context) = 0;
};

}  // namespace agent

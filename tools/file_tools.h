// What read, write and edit share: the file system they were composed with, what each session has seen, and the way
// every change takes. One instance for all sessions; thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/approval.h"
#include "agent/services.h"
#include "agent/tool.h"
#include "sandbox/fs.h"
#include "tools/observations.h"
#include "tools/text_file.h"

namespace tools {

struct FileTools {
  std::shared_ptr<sandbox::Fs> fs;
  std::shared_ptr<agent::ApprovalService> approval;  // may be null
  agent::SharedFlag observe;                         // read before change is enforced
  Observations observations;
};

// What a change is going to be, computed from the file as it is now.
struct Plan {
  std::string bytes;
  std::optional<std::string> expected_hash;  // nothing: a new file
  std::optional<std::string> old_text;       // nothing: a new file
  std::string new_text;
  std::string summary;  // for the model: "2 replacements, first at line 7"
};

// The file as it is now, checked against what the session has seen; nothing when there is none.
struct Current {
  sandbox::FileContent content;
  TextFile text;
};
base::Result<std::optional<Current>> current_file(FileTools& tools, const std::string& session_id,
                                                  const std::string& path);

// Consent, plan, change, facts. A plan that fails is reported before anybody is asked for consent, and made again
// after: the file may have changed meanwhile.
agent::ToolOutcome change_file(FileTools& tools, const std::string& tool_name, const base::Json& arguments,
                               agent::ToolContext& context,
                               const std::function<base::Result<Plan>(const std::string& path)>& plan);

agent::CallView change_call_view(const std::string& verb, const base::Json& arguments, const std::string& cwd);
agent::CallView change_result_view(const std::string& verb, const base::Json& arguments,
                                   const agent::event::ToolResult& result, const std::string& cwd);

std::shared_ptr<agent::Tool> make_read_tool(std::shared_ptr<FileTools> tools);
std::shared_ptr<agent::Tool> make_write_tool(std::shared_ptr<FileTools> tools);
std::shared_ptr<agent::Tool> make_edit_tool(std::shared_ptr<FileTools> tools);

}  // namespace tools

// What the tools share: paths as the model writes them, titles, schemas and error results. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "agent/tool.h"
#include "base/child.h"
#include "base/error.h"
#include "base/json.h"
#include "sandbox/policy.h"

namespace tools {

// Absolute as it is, relative below `cwd`. Refused: empty, NUL, a leading ~ (nothing expands it).
base::Result<std::string> absolute_path(const std::string& path, const std::string& cwd);

// Relative when below cwd, one line, bounded: for titles.
std::string shown_path(const std::string& path, const std::string& cwd);
// The first line that is not blank; "…" stands for all that is left out.
std::string one_line(std::string_view text, std::size_t limit);

// A JSON schema of an object from the text of its members; the escalation members are added when `escalates`.
std::string object_schema(std::string members, std::string_view required, bool escalates);

// "FS_STALE_VERSION: text"; codes in lower case are left out.
std::string error_text(const base::Error& error);

// What was denied, in one line: the first few in full, of the others how many.
std::string denied_changes(const std::vector<base::Denial>& denials);

// The marker of a denied call and, where it may ask, how to. `succeeded`: the command came through all the same.
std::string denial_lines(sandbox::Mode mode, bool confines, const agent::ApprovalService* approval,
                         const agent::Session& session, bool succeeded);

// A bounded copy for clients: head and tail.
std::string bounded_text(const std::string& text);

}  // namespace tools

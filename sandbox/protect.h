// What stays as it is below the writable roots in workspace-write. One function decides it for every backend, for the
// fence and for those that report it. Reads the file system: what is a repository decides what is protected in it. Any
// thread.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "sandbox/policy.h"

namespace sandbox {

struct Protected {
  // Exist, canonical, below a root, none below another: to be held read-only, with every folder above held in place.
  std::vector<std::string> kept;
  // Do not exist. No mount can hold them without leaving something at that place: the fence refuses to make them, and
  // call-init a command's call that would (native/supervise.h).
  std::vector<std::string> absent;
  // Nothing new is made below `closed`, but for what is below `open`.
  std::vector<std::string> closed, open;
  // Of the default list, are or are reached through a link: what they lead to is kept, the link itself is not.
  std::vector<std::string> links;
};
bool below_closed(const Protected& guarded, const std::string& path);

// An explicit entry that is, or is reached through, a link fails (sandbox_unavailable): it could lead elsewhere by the
// time it is mounted. For the default list that would let one command stop every later one, so it is reported instead.
base::Result<Protected> protected_paths(const Policy& policy, const std::vector<std::string>& roots, const Host& host);

// A few words for the model: "git hooks and config, .vscode, ..."; "" when nothing is protected.
std::string protected_words(const Policy& policy);

}  // namespace sandbox

// What a call may change: the closed mode vocabulary, the policy that rides each call, and the one function that says
// which folders a policy may write. File effects only: network and process visibility are not claimed. Pure; any
// thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "sandbox/sockets.h"

namespace sandbox {

// Narrow to wide.
enum class Mode { read_only, workspace_write, danger_full_access };
std::string_view mode_name(Mode mode);  // "read-only", "workspace-write", "danger-full-access"
std::optional<Mode> parse_mode(std::string_view name);
inline bool strictly_wider(Mode wanted, Mode than) { return static_cast<int>(wanted) > static_cast<int>(than); }

// Complete, resolved once per call, a mandatory parameter of everything below. Nothing below reads session state.
struct Policy {
  Mode mode = Mode::read_only;
  std::string workspace_root;  // canonical, absolute
  std::string session_id;
  // Workspace-relative paths kept read-only in workspace-write; absent: the default list of protect.h.
  std::optional<std::vector<std::string>> protect;
  SocketRules sockets;
  std::vector<std::string> writable{};  // further folders for workspace-write, each as further_folder() gave it
  // linked_worktree(workspace_root) as it was when the session began, "" = none. Its repository's folders for commits
  // are writable too, for as long as the same still holds.
  std::string worktree;
};

// Facts of this host and process that the roots depend on; read once at start.
struct Host {
  std::string home;       // "" when unknown
  std::string tmpdir;     // $TMPDIR, "" when unset
  std::string state_dir;  // the agent's state folder (may not exist yet), canonical as far as it exists
  // The user's folder for the agent's compositions (may not exist), and the composition in use; "" = none.
  std::string config_dir{}, config_file{};
  // The program, its helpers and the composition installed with it: what the next process would run and obey.
  std::vector<std::string> own_files{};
  Variables socket_variables{};
};
Host read_host(const std::string& state_dir, const std::string& config_dir = "", const std::string& config_file = "");

// realpath with `..` resolved after links; not_found / fs_permission_denied as they are.
base::Result<std::string> canonical_path(const std::string& path);
// The deepest existing ancestor made canonical, the rest appended lexically ("." dropped; ".." in the rest is refused).
base::Result<std::string> canonical_target(const std::string& absolute_path);
bool path_within(std::string_view path, std::string_view root);  // both canonical; true for the root itself

// One world: every backend profile and the in-process fence take their writable set from here.
// read-only: none. workspace-write: workspace root (first), /tmp, $TMPDIR, the policy's further folders, of a linked
// worktree what its commits write; canonical, existing, deduplicated; /tmp and $TMPDIR are dropped if missing, `/`,
// $HOME, or an ancestor of the agent's state, a further folder if missing or no longer where it was. A workspace root of `/` is refused (sandbox_unavailable). danger-full-access never comes here.
base::Result<std::vector<std::string>> writable_roots(const Policy& policy, const Host& host);
// A folder that the operator adds to the writable ones, "/absolute" or "~/below/home", made canonical as far as it
// exists, once: a command that later plants a link on the way there gains nothing. Refused with what to do
// (invalid_argument): what no command should write as a whole, `/`, the home folder or one above it, /proc, /sys, /dev,
// the agent's state.
base::Result<std::string> further_folder(const std::string& written, const Host& host);
// The state folder when it lies below a writable root: a backend must re-bind it read-only or refuse.
std::optional<std::string> state_below_roots(const std::vector<std::string>& roots, const Host& host);
// The TMPDIR a child gets: kept if in the set, else /tmp.
std::string child_tmpdir(const std::vector<std::string>& roots, const Host& host);

}  // namespace sandbox

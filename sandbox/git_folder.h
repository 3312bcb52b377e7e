// What a git repository has that decides which programs git runs, and whether a folder is a linked worktree of a
// repository elsewhere. Only reads; the content is not trusted, so every walk is bounded and follows no link.
// Git's config is read by hand: `git config` obeys the very files in question, and libgit2 follows what they include.
// Any thread.
#pragma once

#include <string>
#include <vector>

namespace sandbox {

struct GitPaths {
  // Hooks and config of the repository `workspace` is the top of (bare ones too), of its submodules and linked
  // worktrees, the files that say where those are looked for, and what its config names below the workspace as hooks or
  // as more config. A folder with more repositories than can be listed stands for all of them.
  std::vector<std::string> config;
  // Where a submodule that is set up later would be found: whatever is laid down there is its hooks and config by then.
  std::vector<std::string> closed;
  std::vector<std::string> open;  // the git folders of submodules below those
};
// Absolute paths, existing or not. `roots`: what a call may write.
GitPaths git_config_paths(const std::string& workspace, const std::string& home, const std::vector<std::string>& roots);

// The git folder `<common>/worktrees/<name>` of a linked worktree, canonical; "" when `workspace` (canonical) is none
// or it cannot be proven: a `.git` file alone proves nothing, a command may have written it. The folder it names must
// name this very file in turn, which no command confined to the workspace can have written.
std::string linked_worktree(const std::string& workspace);

// The folders of that repository a commit writes to. Not the whole common folder: a file `commondir` made in it would
// let git read config and hooks from elsewhere, and nothing can hold a name that is not there.
std::vector<std::string> worktree_roots(const std::string& worktree_git_folder);
// Of these the one that holds every worktree's own folder; "" when none does.
std::string worktrees_folder(const std::string& worktree_git_folder);

}  // namespace sandbox

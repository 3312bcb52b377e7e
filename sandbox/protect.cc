#include "sandbox/protect.h"

#include <sys/stat.h>

#include <algorithm>

#include "sandbox/fs_posix.h"
#include "sandbox/git_folder.h"
#include "sandbox/sockets.h"

namespace sandbox {
namespace {

// Run by editors and shells that open the folder, without a question or after one that is always answered yes. Not
// AGENTS.md: it is a text like the README.
constexpr const char* default_names[] = {".vscode", ".idea", ".envrc", ".mcp.json"};
constexpr std::size_t most_words = 8;

bool there(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0;
}

class Collector {
 public:
  explicit Collector(const std::vector<std::string>& roots) : roots_(roots) {}

  // False when the path is, or is reached through, a link.
  bool add(const std::string& path) {
    const auto real = canonical_path(path);
    if (real) {
      keep(*real);
      return *real == path;
    }
    if (there(path)) {
      // A link that leads to nothing: what would be made through it is what it names.
      if (auto target = write_target(path)) absent(*target);
      return false;
    }
    const auto target = canonical_target(path);
    if (!target) {
      // What is behind a folder that is closed to us cannot be told, and a command could open it.
      const auto closed = canonical_path(first_closed_folder(path, true));
      if (closed) keep(*closed);
      return true;
    }
    absent(*target);
    return *target == path;
  }

  void close(const std::string& path) {
    const auto target = canonical_target(path);
    if (target && below_a_root(*target)) result.closed.push_back(*target);
  }

  Protected take() {
    for (auto* list : {&result.kept, &result.absent, &result.links}) {
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    std::vector<std::string> all = result.kept;
    all.insert(all.end(), result.absent.begin(), result.absent.end());
    const auto nested = [&](const std::string& path) {
      return std::any_of(all.begin(), all.end(),
                         [&](const auto& other) { return path != other && path_within(path, other); });
    };
    for (auto* list : {&result.kept, &result.absent})
      list->erase(std::remove_if(list->begin(), list->end(), nested), list->end());
    return std::move(result);
  }

  Protected result;

 private:
  bool below_a_root(const std::string& path) const {
    return std::any_of(roots_.begin(), roots_.end(),
                       [&](const auto& root) { return path != root && path_within(path, root); });
  }
  // A link may lead to a root or above one; that is no reason to take the root away.
  void keep(const std::string& path) {
    const bool above =
        std::any_of(roots_.begin(), roots_.end(), [&](const auto& root) { return path_within(root, path); });
    if (!above && below_a_root(path)) result.kept.push_back(path);
  }
  void absent(const std::string& path) {
    if (below_a_root(path)) result.absent.push_back(path);
  }

  const std::vector<std::string>& roots_;
};

}  // namespace

bool below_closed(const Protected& guarded, const std::string& path) {
  const auto below = [&](const std::string& folder) { return path != folder && path_within(path, folder); };
  return std::any_of(guarded.closed.begin(), guarded.closed.end(),
                     [&](const auto& f) { return path_within(path, f); }) &&
         std::none_of(guarded.open.begin(), guarded.open.end(), below);
}

base::Result<Protected> protected_paths(const Policy& policy, const std::vector<std::string>& roots, const Host& host) {
  if (policy.mode != Mode::workspace_write || roots.empty()) return Protected{};
  const std::string& workspace = roots.front();
  Collector collector(roots);
  if (policy.protect) {
    for (const std::string& entry : *policy.protect) {
      std::string path = workspace + "/" + entry;
      while (path.back() == '/') path.pop_back();
      if (collector.add(path)) continue;
      return base::fail(
          base::ErrorCode::sandbox_unavailable,
          "the protected path " + entry + " is, or is reached through, a link: name the real path in `protect`");
    }
  } else {
    GitPaths git = git_config_paths(workspace, host.home, roots);
    for (const std::string& path : git.closed) collector.close(path);
    collector.result.open = std::move(git.open);
    for (const char* name : default_names) git.config.push_back(workspace + "/" + name);
    for (const std::string& path : git.config) {
      if (!collector.add(path) && path_within(path, workspace)) collector.result.links.push_back(path);
    }
  }
  // Whatever the list: these decide what the next process runs with which rights.
  for (const std::string& path : {host.config_file, host.config_dir, host.config_dir + "/cordis.yml"})
    if (!path.empty() && path.front() == '/') collector.add(path);
  for (const std::string& path : host.own_files) collector.add(path);
  return collector.take();
}

std::string protected_words(const Policy& policy) {
  std::string text;
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : ", ") + word; };
  if (!policy.protect) {
    add("git hooks and config");
    for (const char* name : default_names) add(name);
    return text;
  }
  for (std::size_t i = 0; i < policy.protect->size(); ++i) {
    if (i == most_words) {
      add("and " + std::to_string(policy.protect->size() - i) + " more");
      break;
    }
    add((*policy.protect)[i]);
  }
  return text;
}

}  // namespace sandbox

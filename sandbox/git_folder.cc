#include "sandbox/git_folder.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/fd.h"
#include "base/text.h"
#include "sandbox/policy.h"

namespace sandbox {
namespace {

constexpr std::size_t pointer_limit = 8 * 1024;  // of a file that holds one path
constexpr std::size_t config_limit = 1u << 20;
constexpr std::size_t most_repositories = 64;  // in one workspace; each costs several mounts a call
constexpr std::size_t most_entries = 4096;     // looked at below one folder
constexpr int deepest = 8;                     // a submodule's name may have slashes

bool has_kind(const std::string& path, unsigned kind) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 && (info.st_mode & S_IFMT) == kind;
}
bool is_folder(const std::string& path) { return has_kind(path, S_IFDIR); }
bool is_file(const std::string& path) { return has_kind(path, S_IFREG); }

bool is_ours(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 && info.st_uid == geteuid() && (info.st_mode & S_IWOTH) == 0;
}

bool is_bare(const std::string& folder) {
  return is_file(folder + "/HEAD") && is_folder(folder + "/objects") && is_folder(folder + "/refs");
}

std::string joined(const std::string& folder, const std::string& path) {
  return (std::filesystem::path(folder) / path).string();
}

// The one path such a file holds, made canonical; "" when there is none.
std::string pointed(const std::string& file, std::string_view prefix, const std::string& relative_to) {
  if (!is_file(file)) return {};
  const auto text = base::read_file(file, pointer_limit);
  if (!text || text->find('\0') != std::string::npos || !text->starts_with(prefix)) return {};
  const std::string path(base::trim(std::string_view(*text).substr(prefix.size())));
  if (path.empty()) return {};
  return canonical_path(joined(relative_to, path)).value_or("");
}

std::vector<std::string> subfolders(const std::string& folder, std::size_t limit, bool& all) {
  std::vector<std::string> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(folder.c_str()), &closedir);
  std::size_t seen = 0;
  while (listing) {
    const dirent* entry = readdir(listing.get());
    if (entry == nullptr) break;
    if (++seen > limit) {
      all = false;
      break;
    }
    const std::string name = entry->d_name;
    if (name != "." && name != ".." && is_folder(folder + "/" + name)) found.push_back(folder + "/" + name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

// A value without its quotes, escapes and comment.
std::string plain_value(std::string_view text) {
  std::string value;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      value += text[++i];
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && (text[i] == '#' || text[i] == ';')) {
      break;
    } else {
      value += text[i];
    }
  }
  return std::string(base::trim(value));
}

struct Setting {
  std::string name;  // "core.hookspath"; of a section with a subsection only the first word counts
  std::string value;
};

// Of `[core]` or `[includeIf "a]b"]`: where it closes.
std::size_t section_end(std::string_view line) {
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') quoted = !quoted;
    if (line[i] == ']' && !quoted) return i;
  }
  return std::string_view::npos;
}

std::vector<Setting> settings_of(const std::string& file) {
  std::vector<Setting> settings;
  if (!is_file(file)) return settings;
  const auto text = base::read_file(file, config_limit);
  if (!text) return settings;
  std::string section;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    std::string_view line = base::trim(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    if (line.starts_with('[')) {
      const auto close = section_end(line);
      const auto words = line.find_first_of(" \t\"]");
      section = base::to_lower(line.substr(1, words == std::string_view::npos ? words : words - 1));
      if (close == std::string_view::npos) continue;
      line = base::trim(line.substr(close + 1));
    }
    const auto equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    settings.push_back(
        {section + "." + base::to_lower(base::trim(line.substr(0, equals))), plain_value(line.substr(equals + 1))});
  }
  return settings;
}

bool uses_worktree_config(const std::string& common) {
  for (const Setting& setting : settings_of(common + "/config")) {
    if (setting.name == "extensions.worktreeconfig" && base::to_lower(setting.value) != "false") return true;
  }
  return false;
}

class Walk {
 public:
  Walk(std::string workspace, std::string home, const std::vector<std::string>& roots)
      : workspace_(std::move(workspace)), home_(std::move(home)), roots_(roots) {}

  GitPaths run() {
    const std::string dot_git = workspace_ + "/.git";
    if (is_bare(workspace_)) repository(workspace_, 0);
    if (!is_file(dot_git)) {
      // Also what is not there yet: hooks laid down before `git init` would be used by it.
      repository(canonical_path(dot_git).value_or(dot_git), 0);
      return std::move(found_);
    }
    paths_.push_back(dot_git);
    const std::string own = pointed(dot_git, "gitdir:", workspace_);
    if (own.empty()) return std::move(found_);
    const std::string common = pointed(own + "/commondir", "", own);
    repository(own, 0);
    if (!common.empty()) repository(common, 0);
    return std::move(found_);
  }

 private:
  void repository(const std::string& folder, int depth) {
    for (const char* name : {"/hooks", "/config", "/config.worktree", "/commondir"}) paths_.push_back(folder + name);
    for (const char* name : {"/config", "/config.worktree"}) named_in(folder, folder + name);
    worktrees(folder + "/worktrees");
    const GitPaths before = found_;
    found_.closed.push_back(folder + "/modules");
    if (modules(folder + "/modules", depth + 1)) return;
    found_ = before;
    paths_.push_back(folder + "/modules");
  }

  void worktrees(const std::string& folder) {
    if (!is_folder(folder)) return;
    bool all = true;
    const std::size_t before = paths_.size();
    const std::vector<std::string> found = subfolders(folder, most_entries, all);
    for (const std::string& own : found) {
      // What a call may write anyway, the `.git` file of a worktree in its reach, needs no guard here, and without one
      // `git worktree remove` works for it.
      const std::string checkout = pointed(own + "/gitdir", "", own);
      const bool in_reach = !checkout.empty() && std::any_of(roots_.begin(), roots_.end(), [&](const auto& root) {
        return path_within(checkout, root);
      });
      paths_.push_back(own + "/config.worktree");
      if (in_reach && checkout != workspace_ + "/.git") continue;
      paths_.push_back(own + "/commondir");
    }
    if (all && found.size() <= most_repositories) return;
    paths_.resize(before);
    paths_.push_back(folder);
  }

  // False when there are too many, or too deep.
  bool modules(const std::string& folder, int depth) {
    if (!is_folder(folder)) return true;
    if (depth > deepest) return false;
    bool all = true;
    for (const std::string& below : subfolders(folder, most_entries, all)) {
      if (repositories_left_ == 0) return false;
      --repositories_left_;
      if (is_file(below + "/HEAD")) {
        found_.open.push_back(below);
        repository(below, depth);
      } else if (!modules(below, depth + 1)) {
        return false;
      }
    }
    return all;
  }

  // Hooks and further config that a config file names: git runs and reads them as its own.
  void named_in(const std::string& folder, const std::string& file) {
    for (const Setting& setting : settings_of(file)) {
      const bool hooks = setting.name == "core.hookspath";
      if ((!hooks && setting.name != "include.path" && setting.name != "includeif.path") || setting.value.empty())
        continue;
      std::string path = setting.value;
      if (path.starts_with("~/")) path = home_ + path.substr(1);
      path = std::filesystem::path(joined(hooks ? workspace_ : folder, path)).lexically_normal().string();
      while (path.size() > 1 && path.back() == '/') path.pop_back();
      if (path_within(path, workspace_) && path != workspace_ && named_left_ > 0) {
        --named_left_;
        paths_.push_back(path);
      }
    }
  }

  std::string workspace_, home_;
  const std::vector<std::string>& roots_;
  GitPaths found_;
  std::vector<std::string>& paths_ = found_.config;
  std::size_t repositories_left_ = most_repositories;
  std::size_t named_left_ = most_repositories;
};

std::string parent(const std::string& path) { return std::filesystem::path(path).parent_path().string(); }

}  // namespace

GitPaths git_config_paths(const std::string& workspace, const std::string& home,
                          const std::vector<std::string>& roots) {
  return Walk(workspace, home, roots).run();
}

std::string linked_worktree(const std::string& workspace) {
  const std::string dot_git = workspace + "/.git";
  if (!is_ours(dot_git)) return {};
  const std::string own = pointed(dot_git, "gitdir:", workspace);
  if (own.empty() || std::filesystem::path(parent(own)).filename() != "worktrees") return {};
  const std::string common = parent(parent(own));
  if (path_within(common, workspace) || path_within(workspace, common)) return {};
  if (pointed(own + "/gitdir", "", own) != dot_git) return {};
  if (pointed(own + "/commondir", "", own) != common) return {};
  for (const char* folder : {"", "/objects", "/refs", "/worktrees"})
    if (!is_folder(common + folder) || !is_ours(common + folder)) return {};
  for (const std::string& file : {common + "/HEAD", common + "/config", own + "/HEAD"})
    if (!is_file(file) || !is_ours(file)) return {};
  // With this setting a worktree's own config counts, and one that is not there cannot be held.
  if (uses_worktree_config(common) && !is_file(own + "/config.worktree")) return {};
  return is_ours(own) ? own : std::string();
}

std::string worktrees_folder(const std::string& worktree_git_folder) {
  const std::string folder = parent(worktree_git_folder);
  return uses_worktree_config(parent(folder)) ? std::string() : folder;
}

std::vector<std::string> worktree_roots(const std::string& worktree_git_folder) {
  const std::string common = parent(parent(worktree_git_folder));
  std::vector<std::string> roots;
  for (const char* name : {"/objects", "/refs", "/logs"})
    if (is_folder(common + name)) roots.push_back(common + name);
  const std::string all = worktrees_folder(worktree_git_folder);
  roots.push_back(all.empty() ? worktree_git_folder : all);
  return roots;
}

}  // namespace sandbox

#include "sandbox/policy.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>

#include "base/child.h"
#include "sandbox/git_folder.h"

namespace sandbox {

namespace {

constexpr std::string_view temp_root = "/tmp";

std::string canonical_or_empty(const std::string& path) {
  if (path.empty() || path.front() != '/') return {};
  auto canonical = canonical_path(path);
  return canonical ? *canonical : std::string{};
}

std::string home_folder() {
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') return home;
  passwd record{};
  passwd* found = nullptr;
  std::vector<char> buffer(16 * 1024);
  if (getpwuid_r(getuid(), &record, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return record.pw_dir;
  return {};
}

bool is_directory(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// Kernel file systems: what is written there is no file of anybody's work. /dev/shm is memory and may be chosen.
bool kernel_folder(std::string_view path) {
  if (path_within(path, "/dev")) return !path_within(path, "/dev/shm");
  return path_within(path, "/proc") || path_within(path, "/sys");
}

// A temporary folder joins the set only where that cannot widen it to something nobody meant: not `/`, not the home
// folder, neither above nor in the agent's own state.
bool acceptable_temp(const std::string& path, const Host& host) {
  if (path.empty() || path == "/" || kernel_folder(path) || !is_directory(path)) return false;
  if (path == canonical_or_empty(host.home)) return false;
  return host.state_dir.empty() || !(path_within(host.state_dir, path) || path_within(path, host.state_dir));
}

}  // namespace

std::string_view mode_name(Mode mode) {
  switch (mode) {
    case Mode::read_only:
      return "read-only";
    case Mode::workspace_write:
      return "workspace-write";
    case Mode::danger_full_access:
      return "danger-full-access";
  }
  return "read-only";
}

std::optional<Mode> parse_mode(std::string_view name) {
  for (Mode mode : {Mode::read_only, Mode::workspace_write, Mode::danger_full_access})
    if (mode_name(mode) == name) return mode;
  return std::nullopt;
}

namespace {

std::vector<std::string> own_files() {
  std::vector<std::string> files;
  const std::string program = canonical_or_empty("/proc/self/exe");
  if (program.empty()) return files;
  const std::string folder = program.substr(0, program.rfind('/'));
  for (const std::string& path :
       {program, base::helper_path("call-init").value_or(""), base::helper_path("landlock-run").value_or(""),
        canonical_or_empty(folder + "/../share/acp-agent/cordis.yml")})
    if (!path.empty()) files.push_back(path);
  return files;
}

}  // namespace

Host read_host(const std::string& state_dir, const std::string& config_dir, const std::string& config_file) {
  Host host;
  host.home = home_folder();
  if (const char* tmpdir = std::getenv("TMPDIR"); tmpdir != nullptr) host.tmpdir = tmpdir;
  auto canonical = canonical_target(state_dir);
  host.state_dir = canonical ? *canonical : state_dir;
  if (auto folder = canonical_target(config_dir)) host.config_dir = *folder;
  host.config_file = canonical_or_empty(config_file);
  host.own_files = own_files();
  host.socket_variables = read_socket_variables();
  return host;
}

base::Result<std::string> canonical_path(const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    return base::fail(base::ErrorCode::invalid_argument, "a path must not contain a NUL byte");
  }
  char buffer[PATH_MAX];
  if (realpath(path.c_str(), buffer) == nullptr) return base::fail_errno(path, errno);
  return std::string(buffer);
}

base::Result<std::string> canonical_target(const std::string& absolute_path) {
  if (absolute_path.empty() || absolute_path.front() != '/' || absolute_path.find('\0') != std::string::npos) {
    return base::fail(base::ErrorCode::invalid_argument, "not an absolute path: " + absolute_path);
  }
  std::string existing = absolute_path;
  std::vector<std::string> rest;  // innermost first
  while (true) {
    auto canonical = canonical_path(existing);
    if (canonical) {
      std::string target = *canonical;
      for (auto part = rest.rbegin(); part != rest.rend(); ++part) {
        if (target.back() != '/') target += '/';
        target += *part;
      }
      return target;
    }
    if (canonical.error().code != base::ErrorCode::not_found) return canonical;
    // A dangling link is an existing name whose target is elsewhere: what would be created is where it points, which
    // cannot be made canonical here.
    struct stat info {};
    while (existing.size() > 1 && existing.back() == '/') existing.pop_back();
    if (lstat(existing.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) {
      return base::fail(base::ErrorCode::invalid_argument, "a link that points to nothing: " + existing);
    }
    const auto slash = existing.rfind('/');
    const std::string part = existing.substr(slash + 1);
    if (part == "..")
      return base::fail(base::ErrorCode::invalid_argument, "`..` after a missing folder: " + absolute_path);
    if (!part.empty() && part != ".") rest.push_back(part);
    existing = slash == 0 ? "/" : existing.substr(0, slash);
  }
}

bool path_within(std::string_view path, std::string_view root) {
  if (root == "/") return true;
  return path.substr(0, root.size()) == root && (path.size() == root.size() || path[root.size()] == '/');
}

base::Result<std::vector<std::string>> writable_roots(const Policy& policy, const Host& host) {
  std::vector<std::string> roots;
  if (policy.mode != Mode::workspace_write) return roots;
  auto workspace = canonical_path(policy.workspace_root);
  if (!workspace) {
    return base::fail(base::ErrorCode::sandbox_unavailable,
                      "the workspace root cannot be used: " + workspace.error().message);
  }
  // It was canonical when the session began: a link has taken its place since.
  if (*workspace != policy.workspace_root) {
    return base::fail(
        base::ErrorCode::sandbox_unavailable,
        "the workspace root " + policy.workspace_root + " now leads to " + *workspace + "; start a new session");
  }
  if (*workspace == "/") {
    return base::fail(
        base::ErrorCode::sandbox_unavailable,
        "the workspace root is `/`: start the session in a project folder, not in the root of the file system");
  }
  if (kernel_folder(*workspace)) {
    return base::fail(
        base::ErrorCode::sandbox_unavailable,
        "the workspace root " + *workspace + " belongs to the kernel: start the session in a project folder");
  }
  if (!is_directory(*workspace)) {
    return base::fail(base::ErrorCode::sandbox_unavailable,
                      "the workspace root " + *workspace + " is no folder: start the session in a project folder");
  }
  if (!host.state_dir.empty() && path_within(*workspace, host.state_dir)) {
    return base::fail(base::ErrorCode::sandbox_unavailable, "the workspace root lies in the agent's own state folder " +
                                                                host.state_dir +
                                                                ": start the session in a project folder");
  }
  roots.push_back(*workspace);
  const auto covered = [&](const std::string& path) {
    return std::any_of(roots.begin(), roots.end(), [&](const auto& root) { return path_within(path, root); });
  };
  const std::string temp = canonical_or_empty(std::string(temp_root));
  if (!covered(temp) && acceptable_temp(temp, host)) roots.push_back(temp);
  // A name below a writable folder is a command's to turn into a link: what it leads to then is not what was meant.
  const std::string chosen = canonical_or_empty(host.tmpdir);
  if (!covered(chosen) && !covered(host.tmpdir) && acceptable_temp(chosen, host)) roots.push_back(chosen);
  for (const std::string& path : policy.writable)
    if (!covered(path) && canonical_or_empty(path) == path && is_directory(path)) roots.push_back(path);
  if (!policy.worktree.empty() && linked_worktree(*workspace) == policy.worktree) {
    for (const std::string& folder : worktree_roots(policy.worktree))
      if (!covered(folder) && canonical_or_empty(folder) == folder) roots.push_back(folder);
  }
  return roots;
}

base::Result<std::string> further_folder(const std::string& written, const Host& host) {
  const auto refuse = [&](const std::string& why) {
    return base::fail(base::ErrorCode::invalid_argument, "the writable folder " + written + " " + why);
  };
  const bool below_home = written.starts_with("~/");
  if (below_home && host.home.empty()) return refuse("cannot be found, because there is no home folder");
  const std::string path = below_home ? host.home + written.substr(1) : written;
  if (path.empty() || path.front() != '/') return refuse("is neither an absolute path nor one below ~/");
  auto target = canonical_target(path);
  if (!target) return refuse("cannot be used: " + target.error().message);
  const std::string home = canonical_or_empty(host.home);
  if (*target == "/" || (!home.empty() && path_within(home, *target)))
    return refuse("is too wide: name the folders in it that commands must write");
  if (kernel_folder(*target)) return refuse("belongs to the kernel");
  if (!host.state_dir.empty() && path_within(*target, host.state_dir)) return refuse("holds the agent's own state");
  if (canonical_path(*target) && !is_directory(*target)) return refuse("is no folder");
  return target;
}

std::optional<std::string> state_below_roots(const std::vector<std::string>& roots, const Host& host) {
  if (host.state_dir.empty()) return std::nullopt;
  for (const std::string& root : roots)
    if (path_within(host.state_dir, root)) return host.state_dir;
  return std::nullopt;
}

std::string child_tmpdir(const std::vector<std::string>& roots, const Host& host) {
  const std::string wanted = canonical_or_empty(host.tmpdir);
  const bool in_set = !wanted.empty() && std::any_of(roots.begin(), roots.end(), [&](const std::string& root) {
    return path_within(wanted, root);
  });
  return in_set ? host.tmpdir : std::string(temp_root);
}

}  // namespace sandbox

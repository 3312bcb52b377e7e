#include "sandbox/sockets.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "sandbox/policy.h"

namespace sandbox {
namespace {

constexpr int most_entries = 256;  // of a folder of sockets

constexpr SocketKind kinds[] = {SocketKind::docker,  SocketKind::podman,    SocketKind::containerd,
                                SocketKind::systemd, SocketKind::dbus,      SocketKind::tmux,
                                SocketKind::screen,  SocketKind::ssh_agent, SocketKind::x11};

constexpr const char* variable_names[] = {"HOME",
                                          "XDG_RUNTIME_DIR",
                                          "DOCKER_HOST",
                                          "CONTAINER_HOST",
                                          "CONTAINERD_ADDRESS",
                                          "DBUS_SESSION_BUS_ADDRESS",
                                          "DBUS_SYSTEM_BUS_ADDRESS",
                                          "TMUX",
                                          "TMUX_TMPDIR",
                                          "SCREENDIR",
                                          "SSH_AUTH_SOCK",
                                          "DISPLAY",
                                          "WAYLAND_DISPLAY"};

// Where the sockets of a kind are, whether they exist or not. A folder is named where its sockets have no fixed names.
class Places {
 public:
  explicit Places(const Variables& variables) : variables_(variables) {
    const std::string uid = std::to_string(geteuid());
    runtime_ = {"/run/user/" + uid};
    if (const std::string set = value("XDG_RUNTIME_DIR"); !set.empty() && set != runtime_.front())
      runtime_.push_back(set);
    user_ = uid;
  }

  std::vector<std::string> of(SocketKind kind) {
    places_.clear();
    switch (kind) {
      case SocketKind::docker:
        fixed({"/run/docker.sock", "/run/docker/containerd/containerd.sock"});
        runtime({"docker.sock", "docker/containerd/containerd.sock"});
        home({".docker/run/docker.sock", ".docker/desktop/docker.sock", ".colima/default/docker.sock",
              ".rd/docker.sock"});
        url("DOCKER_HOST");
        break;
      case SocketKind::podman:
        fixed({"/run/podman/podman.sock"});
        runtime({"podman/podman.sock"});
        url("CONTAINER_HOST");
        break;
      case SocketKind::containerd:
        fixed({"/run/containerd/containerd.sock", "/run/k3s/containerd/containerd.sock", "/run/crio/crio.sock",
               "/run/buildkit/buildkitd.sock"});
        runtime({"containerd/containerd.sock", "buildkit/buildkitd.sock"});
        url("CONTAINERD_ADDRESS");
        break;
      case SocketKind::systemd:
        fixed({"/run/systemd/private", "/run/systemd/io.systemd.Manager"});
        runtime({"systemd/private", "systemd/io.systemd.Manager"});
        break;
      case SocketKind::dbus:
        fixed({"/run/dbus/system_bus_socket"});
        runtime({"bus"});
        bus("DBUS_SESSION_BUS_ADDRESS");
        bus("DBUS_SYSTEM_BUS_ADDRESS");
        break;
      case SocketKind::tmux:
        fixed({"/tmp/tmux-" + user_});
        if (const std::string folder = value("TMUX_TMPDIR"); !folder.empty()) fixed({folder + "/tmux-" + user_});
        if (const std::string set = value("TMUX"); !set.empty()) fixed({set.substr(0, set.find(','))});
        break;
      case SocketKind::screen:
        fixed({"/run/screen", value("SCREENDIR")});
        home({".screen"});
        break;
      case SocketKind::ssh_agent:
        fixed({value("SSH_AUTH_SOCK")});
        runtime({"keyring/ssh", "gcr/ssh", "ssh-agent.socket", "openssh_agent", "gnupg/S.gpg-agent.ssh"});
        home({".gnupg/S.gpg-agent.ssh"});
        break;
      case SocketKind::x11:
        fixed({"/tmp/.X11-unix"});
        if (const std::string name = value("WAYLAND_DISPLAY"); !name.empty() && name.front() == '/') fixed({name});
        runtime({value("WAYLAND_DISPLAY").empty() ? "wayland-0" : value("WAYLAND_DISPLAY")});
        break;
    }
    return places_;
  }

  bool abstract(SocketKind kind) const {
    // An X server listens on both names unless it is told otherwise.
    if (kind == SocketKind::x11) return value("DISPLAY").starts_with(':');
    if (kind != SocketKind::dbus) return false;
    return (value("DBUS_SESSION_BUS_ADDRESS") + value("DBUS_SYSTEM_BUS_ADDRESS")).find("unix:abstract=") !=
           std::string::npos;
  }

 private:
  std::string value(const std::string& name) const {
    const auto found = variables_.find(name);
    return found == variables_.end() ? std::string() : found->second;
  }
  void fixed(std::initializer_list<std::string> paths) { places_.insert(places_.end(), paths); }
  void runtime(std::initializer_list<std::string> names) {
    for (const std::string& folder : runtime_)
      for (const std::string& name : names) places_.push_back(folder + "/" + name);
  }
  void home(std::initializer_list<const char*> names) {
    const std::string folder = value("HOME");
    for (const char* name : names)
      if (!folder.empty()) places_.push_back(folder + "/" + name);
  }
  void url(const char* variable) {
    std::string text = value(variable);
    if (text.starts_with("unix://")) text.erase(0, 7);
    places_.push_back(std::move(text));  // anything else is no absolute path
  }
  // "unix:path=/a,guid=…;unix:path=/b"
  void bus(const char* variable) {
    const std::string text = value(variable);
    for (auto at = text.find("path="); at != std::string::npos; at = text.find("path=", at + 1)) {
      const auto begin = at + 5;
      places_.push_back(text.substr(begin, text.find_first_of(",;", begin) - begin));
    }
  }

  const Variables& variables_;
  std::string user_;
  std::vector<std::string> runtime_, places_;
};

bool in_group(gid_t group) {
  if (group == getegid()) return true;
  gid_t groups[1024];
  const int count = getgroups(1024, groups);
  return count > 0 && std::find(groups, groups + count, group) != groups + count;
}

bool permitted(const struct stat& info, unsigned wanted) {
  const unsigned shift = info.st_uid == geteuid() ? 6 : in_group(info.st_gid) ? 3 : 0;
  return ((info.st_mode >> shift) & wanted) == wanted;
}

bool is_socket(const struct stat& info) { return S_ISSOCK(info.st_mode) || S_ISFIFO(info.st_mode); }

bool connectable(const std::string& path, const struct stat& info, bool capabilities) {
  if (!is_socket(info)) return false;
  if (geteuid() == 0 && !capabilities) return first_closed_folder(path, false).empty() && permitted(info, 2);
  return faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
}

struct Listing {
  std::vector<std::string> sockets;  // that can be connected to
  bool others = false;               // there is something that is no socket, or too much to tell
};

// One level of folders below, as screen has one for each user.
void list(const std::string& folder, int depth, bool capabilities, Listing& found) {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(folder.c_str()), &closedir);
  if (!listing) return;
  int seen = 0;
  while (const dirent* entry = readdir(listing.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    const std::string path = folder + "/" + name;
    struct stat info {};
    if (++seen > most_entries || lstat(path.c_str(), &info) != 0) {
      found.others = true;
      return;
    }
    if (S_ISDIR(info.st_mode) && depth > 0) {
      list(path, depth - 1, capabilities, found);
    } else if (!is_socket(info)) {
      found.others = true;
    } else if (connectable(path, info, capabilities)) {
      found.sockets.push_back(path);
    }
  }
}

void add(std::vector<std::string>& to, const std::string& path) {
  if (std::find(to.begin(), to.end(), path) == to.end()) to.push_back(path);
}

}  // namespace

std::string_view socket_kind_name(SocketKind kind) {
  switch (kind) {
    case SocketKind::docker:
      return "docker";
    case SocketKind::podman:
      return "podman";
    case SocketKind::containerd:
      return "containerd";
    case SocketKind::systemd:
      return "systemd";
    case SocketKind::dbus:
      return "dbus";
    case SocketKind::tmux:
      return "tmux";
    case SocketKind::screen:
      return "screen";
    case SocketKind::ssh_agent:
      return "ssh-agent";
    case SocketKind::x11:
      return "x11";
  }
  return "";
}

std::optional<SocketKind> parse_socket_kind(std::string_view name) {
  for (const SocketKind kind : kinds)
    if (socket_kind_name(kind) == name) return kind;
  return std::nullopt;
}

std::vector<std::string> socket_kind_names() {
  std::vector<std::string> names;
  for (const SocketKind kind : kinds) names.emplace_back(socket_kind_name(kind));
  return names;
}

Variables read_socket_variables() {
  Variables variables;
  for (const char* name : variable_names)
    if (const char* value = std::getenv(name); value != nullptr) variables[name] = value;
  return variables;
}

std::string first_closed_folder(const std::string& path, bool capabilities) {
  for (auto end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const auto slash = end == std::string::npos ? path.rfind('/') : path.rfind('/', end - 1);
    const std::string folder = slash == 0 ? "/" : path.substr(0, slash);
    struct stat info {};
    const bool open = geteuid() == 0 && !capabilities ? stat(folder.c_str(), &info) == 0 && permitted(info, 1)
                                                      : faccessat(AT_FDCWD, folder.c_str(), X_OK, AT_EACCESS) == 0;
    if (!open) return folder;
    if (end == std::string::npos) return {};
  }
}

bool ControlSockets::within_folder(const std::string& file) const {
  return std::any_of(folders.begin(), folders.end(),
                     [&](const std::string& folder) { return path_within(file, folder); });
}

ControlSockets control_sockets(const SocketRules& rules, const Variables& variables, bool capabilities) {
  ControlSockets found;
  Places places(variables);
  std::vector<std::string> candidates = rules.paths;
  for (const SocketKind kind : rules.masked) {
    const std::vector<std::string> of_kind = places.of(kind);
    candidates.insert(candidates.end(), of_kind.begin(), of_kind.end());
    found.abstract = found.abstract || places.abstract(kind);
  }
  for (const std::string& candidate : candidates) {
    if (candidate.empty() || candidate.front() != '/') continue;
    const auto path = canonical_path(candidate);
    struct stat info {};
    if (!path || lstat(path->c_str(), &info) != 0) continue;
    if (S_ISDIR(info.st_mode)) {
      if (!first_closed_folder(*path, capabilities).empty()) continue;
      Listing listing;
      list(*path, 1, capabilities, listing);
      if (!listing.others && !listing.sockets.empty()) add(found.folders, *path);
      for (const std::string& socket : listing.sockets) add(found.files, socket);
    } else if (connectable(*path, info, capabilities)) {
      add(found.files, *path);
    }
  }
  return found;
}

}  // namespace sandbox

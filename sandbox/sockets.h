// Control sockets: programs outside the sandbox that change files for whoever connects to them. Which there are, which
// exist here and can be connected to. Looks, never connects: a connection could start a service. Any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandbox {

enum class SocketKind { docker, podman, containerd, systemd, dbus, tmux, screen, ssh_agent, x11 };
std::string_view socket_kind_name(SocketKind kind);  // "docker", ..., "ssh-agent", "x11"
std::optional<SocketKind> parse_socket_kind(std::string_view name);
std::vector<std::string> socket_kind_names();

// What a policy masks. ssh-agent and x11 are left by default: git over SSH needs the one, programs with windows the
// other, and neither writes a file by itself.
struct SocketRules {
  std::vector<SocketKind> masked{SocketKind::docker, SocketKind::podman, SocketKind::containerd, SocketKind::systemd,
                                 SocketKind::dbus,   SocketKind::tmux,   SocketKind::screen};
  std::vector<std::string> paths{};  // further ones, absolute
};

// The variables that name sockets, read once at start.
using Variables = std::map<std::string, std::string>;
Variables read_socket_variables();

struct ControlSockets {
  std::vector<std::string> folders;  // that hold sockets and nothing else
  std::vector<std::string> files;    // every socket, also in those folders
  bool abstract = false;             // one has no place in the file system, and no mount can cover it
  bool within_folder(const std::string& file) const;
  bool none() const { return files.empty() && !abstract; }
};
// Canonical, existing, and open to a process of this user; `capabilities`: to one that keeps root's over files, too.
ControlSockets control_sockets(const SocketRules& rules, const Variables& variables, bool capabilities);

// The first folder on the way to `path` (canonical) that a process of this user cannot pass, "" when it gets there;
// `capabilities` as above: root without them has lost what a user namespace with one id takes. A mount on what cannot be
// reached fails.
std::string first_closed_folder(const std::string& path, bool capabilities);

}  // namespace sandbox

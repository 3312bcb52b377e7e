// What each backend is told, generated from the one set of writable roots. Measured reasons for the bwrap flags: as uid
// 0 a profile without its own user namespace can be remounted writable; /proc/sys stays writable for host uid 0 even
// with no capabilities, because bwrap's own cover looks only at the folder's mode; its private /dev is a writable tmpfs
// that swallows `dd of=/dev/sdz`; a working directory that is not visible inside silently becomes $HOME without
// --chdir.
#include <sys/stat.h>

#include <algorithm>
#include <map>

#include "sandbox/local_sandbox.h"

namespace sandbox {

namespace {

// What an ordinary shell writes to besides files, of the host's /dev: Landlock alone has no other. Not /dev/shm, which
// holds other programs' memory files, nor the terminals of /dev/pts, on one of which the user may be reading a request
// for consent.
constexpr const char* devices[] = {"/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};

bool exists(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0;
}

void append(std::vector<std::string>& to, std::initializer_list<std::string> items) { to.insert(to.end(), items); }

std::vector<std::string> launcher_argv(const ProfileInput& input, const std::vector<std::string>& writable,
                                       bool quiet) {
  std::vector<std::string> argv{input.launcher, "--status", std::to_string(base::child_launcher_status)};
  if (input.supervised) append(argv, {"--listener", std::to_string(base::child_listener_socket)});
  if (input.supervised && input.ask_connect) argv.emplace_back("--ask-connect");
  if (quiet) {
    argv.emplace_back("--quiet");  // bwrap covers what an older ABI does not
  } else if (!input.supervised && input.roots.empty()) {
    argv.emplace_back("--refuse-metadata");  // with nobody to ask: all of it, where nothing may be changed anyway
  }
  append(argv, {"--ro", "/"});
  for (const std::string& path : writable) append(argv, {"--rw", path});
  argv.push_back("--");
  argv.insert(argv.end(), input.argv.begin(), input.argv.end());
  return argv;
}

// Mount points below the root, parents first: the roots, what stays read-only, and, between the two, every folder bound
// onto itself. A mount moves with its parent: without those, `mv` of a parent and a new folder under the old name would
// put a writable path where the read-only one was; a mount point itself cannot be renamed.
std::map<std::string, bool> mounts_of(const ProfileInput& input) {
  std::map<std::string, bool> writable;
  for (const std::string& root : input.roots) writable[root] = true;
  std::vector<std::string> read_only = input.read_only;
  if (auto state = state_below_roots(input.roots, input.host)) read_only.push_back(*state);
  for (const std::string& path : read_only) {
    for (const std::string& root : input.roots) {
      if (!path_within(path, root)) continue;
      for (auto end = path.find('/', root.size() + 1); end != std::string::npos; end = path.find('/', end + 1))
        writable.emplace(path.substr(0, end), true);
      writable[path] = false;
    }
  }
  return writable;
}

std::string seatbelt_string(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

std::vector<std::string> writable_devices(Mode mode) {
  std::vector<std::string> found{"/dev/null"};
  if (mode == Mode::read_only) return found;
  for (const char* device : devices)
    if (exists(device)) found.emplace_back(device);
  return found;
}

std::vector<std::string> bwrap_argv(const std::string& bwrap, const ProfileInput& input) {
  std::vector<std::string> argv{bwrap};
  if (input.capabilities.empty()) argv.emplace_back("--unshare-user");
  append(argv, {"--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--cap-drop", "ALL"});
  for (const std::string& capability : input.capabilities) append(argv, {"--cap-add", capability});
  // Its last use is the launcher's: without it the bounding set stays full.
  if (!input.capabilities.empty() && !input.launcher.empty()) append(argv, {"--cap-add", "CAP_SETPCAP"});
  append(argv, {"--new-session", "--die-with-parent"});
  append(argv, {"--ro-bind", "/", "/", "--dev", "/dev", "--tmpfs", "/dev/shm", "--remount-ro", "/dev"});
  append(argv, {"--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"});
  if (exists("/proc/sysrq-trigger")) append(argv, {"--ro-bind", "/proc/sysrq-trigger", "/proc/sysrq-trigger"});
  for (const auto& [path, writable] : mounts_of(input)) append(argv, {writable ? "--bind" : "--ro-bind", path, path});
  // An empty folder, read-only, so that what is written there is refused and not lost; a device no socket call takes.
  for (const std::string& path : input.masked.folders) append(argv, {"--tmpfs", path, "--remount-ro", path});
  for (const std::string& path : input.masked.files) {
    if (!input.masked.within_folder(path)) append(argv, {"--ro-bind", "/dev/null", path});
  }
  append(argv, {"--chdir", input.cwd});
  if (input.launcher.empty()) {
    append(argv, {"--json-status-fd", "3", "--"});
    argv.insert(argv.end(), input.argv.begin(), input.argv.end());
    return argv;
  }
  argv.push_back("--");
  std::vector<std::string> writable{"/dev"};  // bwrap's own
  writable.insert(writable.end(), input.roots.begin(), input.roots.end());
  const std::vector<std::string> inner = launcher_argv(input, writable, true);
  argv.insert(argv.end(), inner.begin(), inner.end());
  return argv;
}

std::vector<std::string> landlock_argv(const ProfileInput& input) {
  std::vector<std::string> writable = writable_devices(input.policy.mode);
  writable.insert(writable.end(), input.roots.begin(), input.roots.end());
  return launcher_argv(input, writable, false);
}

std::string seatbelt_profile(const ProfileInput& input) {
  std::string profile =
      "(version 1)\n(allow default)\n(deny file-write*)\n(allow file-write* (literal \"/dev/null\"))\n";
  for (const std::string& root : input.roots)
    profile += "(allow file-write* (subpath " + seatbelt_string(root) + "))\n";
  if (auto state = state_below_roots(input.roots, input.host))
    profile += "(deny file-write* (subpath " + seatbelt_string(*state) + "))\n";
  for (const std::string& path : input.closed)
    profile += "(deny file-write* (subpath " + seatbelt_string(path) + "))\n";
  for (const std::string& path : input.open) profile += "(allow file-write* (subpath " + seatbelt_string(path) + "))\n";
  for (const auto* list : {&input.read_only, &input.absent})
    for (const std::string& path : *list) profile += "(deny file-write* (subpath " + seatbelt_string(path) + "))\n";
  // Rules go by path: a folder above them that moves away takes what is in it out of their reach.
  for (const auto& [path, writable] : mounts_of(input)) {
    if (writable && std::find(input.roots.begin(), input.roots.end(), path) == input.roots.end())
      profile += "(deny file-write-unlink (literal " + seatbelt_string(path) + "))\n";
  }
  return profile;
}

std::vector<std::string> seatbelt_argv(const ProfileInput& input) {
  std::vector<std::string> argv{"/usr/bin/sandbox-exec", "-p", seatbelt_profile(input), "--"};
  argv.insert(argv.end(), input.argv.begin(), input.argv.end());
  return argv;
}

}  // namespace sandbox

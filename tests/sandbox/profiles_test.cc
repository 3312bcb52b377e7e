// What each backend is told, compared with writable_roots().
#include <algorithm>
#include <filesystem>
#include <set>

#include "sandbox/local_sandbox.h"
#include "tests/sandbox/support.h"

using sandbox::Host;
using sandbox::Mode;
using sandbox::ProfileInput;
using Words = std::vector<std::string>;

namespace {

ProfileInput input_for(Mode mode, const std::string& root, const Host& host) {
  ProfileInput input;
  input.policy.mode = mode;
  input.policy.workspace_root = root;
  input.roots = sandbox::writable_roots(input.policy, host).value();
  input.cwd = root;
  input.host = host;
  input.argv = {"/bin/bash", "-c", "true"};
  return input;
}

// The values of an option before the `--`, `arity` words each, first word kept.
std::set<std::string> values(const Words& argv, const std::string& option, std::size_t from = 0) {
  std::set<std::string> found;
  for (std::size_t i = from; i + 1 < argv.size(); ++i)
    if (argv[i] == option) found.insert(argv[i + 1]);
  return found;
}

std::set<std::string> without_devices(std::set<std::string> paths) {
  for (auto it = paths.begin(); it != paths.end();) it = it->rfind("/dev", 0) == 0 ? paths.erase(it) : std::next(it);
  return paths;
}

std::size_t index_of(const Words& argv, const Words& sequence) {
  return static_cast<std::size_t>(std::search(argv.begin(), argv.end(), sequence.begin(), sequence.end()) -
                                  argv.begin());
}

}  // namespace

TEST_CASE("every profile makes exactly the writable roots writable") {
  test::Folder folder;
  std::filesystem::create_directories(folder / "ws\nodd \"name\\");
  std::filesystem::create_directories(folder / "temp");
  const std::string root = folder / "ws\nodd \"name\\";
  for (const Mode mode : {Mode::read_only, Mode::workspace_write}) {
    ProfileInput input = input_for(mode, root, {"/root", folder / "temp", folder / "state"});
    const std::set<std::string> roots(input.roots.begin(), input.roots.end());
    CHECK(roots.size() == (mode == Mode::read_only ? 0 : 3));

    const Words plain = sandbox::bwrap_argv("/usr/bin/bwrap", input);
    CHECK(values(plain, "--bind") == roots);
    input.launcher = "/x/landlock-run";
    const Words stacked = sandbox::bwrap_argv("/usr/bin/bwrap", input);
    CHECK(values(stacked, "--bind") == roots);
    CHECK(without_devices(values(stacked, "--rw")) == roots);
    const Words landlock = sandbox::landlock_argv(input);
    CHECK(without_devices(values(landlock, "--rw")) == roots);
    CHECK(values(landlock, "--ro") == std::set<std::string>{"/"});

    std::string expected =
        "(version 1)\n(allow default)\n(deny file-write*)\n(allow file-write* (literal \"/dev/null\"))\n";
    for (const std::string& path : input.roots) {
      std::string quoted;
      for (const char c : path) quoted += (c == '"' || c == '\\') ? std::string("\\") + c : std::string(1, c);
      expected += "(allow file-write* (subpath \"" + quoted + "\"))\n";
    }
    CHECK(sandbox::seatbelt_profile(input) == expected);
  }
}

TEST_CASE("read-only grants /dev/null and no other device of the host") {
  const ProfileInput input = input_for(Mode::read_only, "/usr", {"/root", "", ""});
  CHECK(values(sandbox::landlock_argv(input), "--rw") == std::set<std::string>{"/dev/null"});
  const auto wide = values(sandbox::landlock_argv(input_for(Mode::workspace_write, "/usr", {"/root", "", ""})), "--rw");
  CHECK(wide.count("/dev/zero") == 1);
  for (const char* shared : {"/dev", "/dev/shm", "/dev/pts", "/dev/ptmx"}) CHECK(wide.count(shared) == 0);
}

TEST_CASE("what root keeps comes with no user namespace of bwrap's own, and the launcher can give up the rest") {
  ProfileInput input = input_for(Mode::read_only, "/usr", {"/root", "", ""});
  input.capabilities = {"CAP_CHOWN", "CAP_KILL"};
  Words argv = sandbox::bwrap_argv("/usr/bin/bwrap", input);
  argv.resize(11);
  CHECK(argv == Words{"/usr/bin/bwrap", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
                      "--cap-drop", "ALL", "--cap-add", "CAP_CHOWN", "--cap-add", "CAP_KILL"});
  input.launcher = "/x/landlock-run";
  CHECK(values(sandbox::bwrap_argv("/usr/bin/bwrap", input), "--cap-add") ==
        std::set<std::string>{"CAP_CHOWN", "CAP_KILL", "CAP_SETPCAP"});
}

TEST_CASE("the bwrap profile, word by word") {
  test::Folder folder;
  ProfileInput input = input_for(Mode::workspace_write, folder.path(), {"/root", "", ""});
  input.launcher = "/x/landlock-run";
  Words argv = sandbox::bwrap_argv("/usr/bin/bwrap", input);
  const auto sysrq = index_of(argv, {"--ro-bind", "/proc/sysrq-trigger", "/proc/sysrq-trigger"});
  if (sysrq < argv.size())
    argv.erase(argv.begin() + static_cast<std::ptrdiff_t>(sysrq),
               argv.begin() + static_cast<std::ptrdiff_t>(sysrq) + 3);
  CHECK(argv == Words{"/usr/bin/bwrap",
                      "--unshare-user",
                      "--unshare-pid",
                      "--unshare-ipc",
                      "--unshare-uts",
                      "--unshare-cgroup-try",
                      "--cap-drop",
                      "ALL",
                      "--new-session",
                      "--die-with-parent",
                      "--ro-bind",
                      "/",
                      "/",
                      "--dev",
                      "/dev",
                      "--tmpfs",
                      "/dev/shm",
                      "--remount-ro",
                      "/dev",
                      "--proc",
                      "/proc",
                      "--ro-bind",
                      "/proc/sys",
                      "/proc/sys",
                      "--bind",
                      "/tmp",
                      "/tmp",
                      "--bind",
                      folder.path(),
                      folder.path(),
                      "--chdir",
                      folder.path(),
                      "--",
                      "/x/landlock-run",
                      "--status",
                      "3",
                      "--quiet",
                      "--ro",
                      "/",
                      "--rw",
                      "/dev",
                      "--rw",
                      folder.path(),
                      "--rw",
                      "/tmp",
                      "--",
                      "/bin/bash",
                      "-c",
                      "true"});
  input.launcher.clear();
  argv = sandbox::bwrap_argv("/usr/bin/bwrap", input);
  const auto tail = index_of(argv, {"--chdir", folder.path()});
  CHECK(Words(argv.begin() + static_cast<std::ptrdiff_t>(tail) + 2, argv.end()) ==
        Words{"--json-status-fd", "3", "--", "/bin/bash", "-c", "true"});
}

TEST_CASE("what stays read-only below a root is bound last, with every folder above it held in place") {
  ProfileInput input;
  input.policy.mode = Mode::workspace_write;
  input.roots = {"/home/u", "/tmp"};
  input.host.state_dir = "/home/u/.local/state/acp-agent";
  input.read_only = {"/home/u/p/.git", "/elsewhere"};
  input.cwd = "/home/u";
  input.argv = {"true"};
  const Words argv = sandbox::bwrap_argv("/usr/bin/bwrap", input);
  const Words mounts{"--bind",
                     "/home/u",
                     "/home/u",
                     "--bind",
                     "/home/u/.local",
                     "/home/u/.local",
                     "--bind",
                     "/home/u/.local/state",
                     "/home/u/.local/state",
                     "--ro-bind",
                     "/home/u/.local/state/acp-agent",
                     "/home/u/.local/state/acp-agent",
                     "--bind",
                     "/home/u/p",
                     "/home/u/p",
                     "--ro-bind",
                     "/home/u/p/.git",
                     "/home/u/p/.git",
                     "--bind",
                     "/tmp",
                     "/tmp",
                     "--chdir",
                     "/home/u"};
  CHECK(index_of(argv, mounts) < argv.size());
  CHECK(sandbox::seatbelt_profile(input).find("(deny file-write* (subpath \"/home/u/.local/state/acp-agent\"))\n") !=
        std::string::npos);
}

TEST_CASE("each platform has its chain, and any other none") {
  CHECK(sandbox::platform_chain("linux") == Words{"bwrap", "landlock"});
  CHECK(sandbox::platform_chain("darwin") == Words{"seatbelt"});
  for (const char* other : {"windows", "freebsd", "", "Linux"}) CHECK(sandbox::platform_chain(other).empty());
}

TEST_CASE("enforcement in words") {
  CHECK(sandbox::to_string(sandbox::Enforcement{}) == "full");
  CHECK(sandbox::to_string({sandbox::Coverage::partial, {"a", "b"}}) == "partial (a; b)");
}

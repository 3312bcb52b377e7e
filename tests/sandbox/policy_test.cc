#include "sandbox/policy.h"

#include <filesystem>

#include "tests/sandbox/support.h"

using sandbox::Host;
using sandbox::Mode;
using sandbox::Policy;
namespace fs = std::filesystem;
using Roots = std::vector<std::string>;

namespace {

Policy workspace(const std::string& root) {
  Policy policy;
  policy.mode = Mode::workspace_write;
  policy.workspace_root = root;
  return policy;
}

std::string link(const std::string& target, const std::string& at) {
  fs::create_symlink(target, at);
  return at;
}

}  // namespace

TEST_CASE("modes are a closed vocabulary, narrow to wide") {
  for (const Mode mode : {Mode::read_only, Mode::workspace_write, Mode::danger_full_access})
    CHECK(sandbox::parse_mode(sandbox::mode_name(mode)) == mode);
  for (const char* name : {"", "read_only", "Read-Only", "full", "workspace-write "})
    CHECK_FALSE(sandbox::parse_mode(name));
  CHECK(sandbox::strictly_wider(Mode::workspace_write, Mode::read_only));
  CHECK_FALSE(sandbox::strictly_wider(Mode::workspace_write, Mode::workspace_write));
  CHECK_FALSE(sandbox::strictly_wider(Mode::read_only, Mode::danger_full_access));
}

TEST_CASE("a path lies within a root by whole components") {
  CHECK(sandbox::path_within("/a/b", "/a"));
  CHECK(sandbox::path_within("/a", "/a"));
  CHECK(sandbox::path_within("/a", "/"));
  CHECK_FALSE(sandbox::path_within("/ab", "/a"));
  CHECK_FALSE(sandbox::path_within("/", "/a"));
}

TEST_CASE("canonical paths resolve links before dot-dot") {
  test::Folder folder;
  fs::create_directories(folder / "real/deep");
  link(folder / "real/deep", folder / "link");
  CHECK(sandbox::canonical_path(folder / "link/..").value() == folder / "real");
  CHECK(sandbox::canonical_path(folder / "missing").error().code == base::ErrorCode::not_found);
  CHECK_FALSE(sandbox::canonical_path(std::string("/tmp\0/x", 7)));
  CHECK(sandbox::canonical_target(folder / "link/new/file").value() == folder / "real/deep/new/file");
  CHECK(sandbox::canonical_target(folder / "link/../new/./file/").value() == folder / "real/new/file");
  CHECK_FALSE(sandbox::canonical_target(folder / "missing/../file"));
  CHECK_FALSE(sandbox::canonical_target("relative"));
  CHECK_FALSE(sandbox::canonical_target(""));
  link("/nonexistent/place", folder / "dangling");
  CHECK_FALSE(sandbox::canonical_target(folder / "dangling"));
  CHECK_FALSE(sandbox::canonical_target(folder / "dangling/below"));
  link(folder / "loop", folder / "loop");
  CHECK_FALSE(sandbox::canonical_target(folder / "loop/x"));
}

TEST_CASE("only workspace-write has writable roots") {
  test::Folder folder;
  Policy policy = workspace(folder.path());
  const Host host{"/root", "", ""};
  CHECK(sandbox::writable_roots(policy, host).value() == Roots{folder.path(), "/tmp"});
  policy.mode = Mode::read_only;
  CHECK(sandbox::writable_roots(policy, host).value().empty());
}

TEST_CASE("a workspace root that a link took the place of is refused") {
  test::Folder folder;
  fs::create_directories(folder / "ws");
  const auto roots = sandbox::writable_roots(workspace(link(folder / "ws", folder / "alias")), {"/root", "", ""});
  REQUIRE_FALSE(roots);
  CHECK(roots.error().code == base::ErrorCode::sandbox_unavailable);
  CHECK(roots.error().message ==
        "the workspace root " + (folder / "alias") + " now leads to " + (folder / "ws") + "; start a new session");
}

TEST_CASE("a temporary folder below a writable one that became a link opens nothing") {
  test::Folder folder;
  fs::create_directories(folder / "ws");
  fs::create_directories(folder / "elsewhere");
  const std::string turned = link(folder / "elsewhere", folder / "ws/tmp");
  CHECK(sandbox::writable_roots(workspace(folder / "ws"), {"/root", turned, ""}).value() ==
        Roots{folder / "ws", "/tmp"});
}

TEST_CASE("roots are canonical, existing and said once") {
  test::Folder folder;
  fs::create_directories(folder / "ws/tmp");
  fs::create_directories(folder / "temp");
  const std::string root = folder / "ws";
  CHECK(sandbox::writable_roots(workspace(root), {"/root", link(folder / "temp", folder / "t2"), ""}).value() ==
        Roots{folder / "ws", "/tmp", folder / "temp"});
  for (const std::string& tmpdir :
       {std::string(), std::string("/tmp"), std::string("/tmp/"), folder / "missing", std::string("relative"),
        folder / "ws/tmp", std::string("/"), std::string("/proc"), std::string("/dev")})
    CHECK(sandbox::writable_roots(workspace(root), {"/root", tmpdir, ""}).value() == Roots{folder / "ws", "/tmp"});
  // The home folder, and what lies above or in the agent's state.
  CHECK(sandbox::writable_roots(workspace(root), {folder / "temp", folder / "temp", ""}).value().size() == 2);
  CHECK(sandbox::writable_roots(workspace(root), {"/root", folder / "temp", folder / "temp/state"}).value().size() ==
        2);
  CHECK(sandbox::writable_roots(workspace(root), {"/root", folder / "temp", folder.path()}).error().code ==
        base::ErrorCode::sandbox_unavailable);
  CHECK(sandbox::writable_roots(workspace(root), {"/root", "", "/tmp/state"}).value() == Roots{folder / "ws"});
  CHECK(sandbox::writable_roots(workspace(root), {"/tmp", "", ""}).value() == Roots{folder / "ws"});
}

TEST_CASE("folders that the operator adds are writable, and a link that is planted later adds nothing") {
  test::Folder folder;
  for (const char* name : {"ws", "home/.npm", "home/state", "cache/a", "elsewhere"})
    fs::create_directories(folder / name);
  std::ofstream(folder / "file") << "x";
  const Host host{folder / "home", "", folder / "home/state"};
  CHECK(sandbox::further_folder("~/.npm", host).value() == folder / "home/.npm");
  CHECK(sandbox::further_folder(folder / "cache/./a/", host).value() == folder / "cache/a");
  CHECK(sandbox::further_folder("~/later/on", host).value() == folder / "home/later/on");
  for (const std::string& path :
       {std::string(), std::string("relative"), std::string("~"), std::string("~/"), std::string("~other/x"),
        std::string("/"), folder.path(), folder / "home/.npm/..", folder / "home/state", folder / "home/state/x",
        folder / "file", std::string("/proc/self"), std::string("/dev"), std::string("/sys"),
        std::string("/tmp/\0x", 7)}) {
    INFO(path);
    const auto refused = sandbox::further_folder(path, host);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == base::ErrorCode::invalid_argument);
  }
  CHECK_FALSE(sandbox::further_folder("~/x", {"", "", ""}));

  auto policy = workspace(folder / "ws");
  policy.writable = {folder / "cache", folder / "cache/a", folder / "missing", folder / "ws"};
  const Roots wide{folder / "ws", "/tmp", folder / "cache"};
  CHECK(sandbox::writable_roots(policy, host).value() == wide);
  policy.writable = {folder / "cache/a", folder / "cache"};
  CHECK(sandbox::writable_roots(policy, host).value() ==
        Roots{folder / "ws", "/tmp", folder / "cache/a", folder / "cache"});
  // A command could write `cache`.
  fs::remove_all(folder / "cache/a");
  fs::create_directory_symlink(folder / "elsewhere", folder / "cache/a");
  CHECK(sandbox::writable_roots(policy, host).value() == wide);
  policy.mode = Mode::read_only;
  CHECK(sandbox::writable_roots(policy, host).value().empty());
}

TEST_CASE("a workspace root that is no place to work is refused with what to do") {
  test::Folder folder;
  std::ofstream(folder / "file") << "x";
  const Host host{"/root", "", folder / "state"};
  fs::create_directories(folder / "state/sessions");
  for (const std::string& root :
       {std::string("/"), link("/", folder / "slash"), std::string("/proc"), std::string("/sys"), std::string("/dev"),
        folder / "missing", folder / "file", folder / "state", folder / "state/sessions"}) {
    INFO(root);
    const auto roots = sandbox::writable_roots(workspace(root), host);
    REQUIRE_FALSE(roots);
    CHECK(roots.error().code == base::ErrorCode::sandbox_unavailable);
  }
}

TEST_CASE("the state folder below a root is found") {
  CHECK(sandbox::state_below_roots({"/home/u"}, {"", "", "/home/u/.local/state/a"}) == "/home/u/.local/state/a");
  CHECK_FALSE(sandbox::state_below_roots({"/home/u/p"}, {"", "", "/home/u/.local/state/a"}));
  CHECK_FALSE(sandbox::state_below_roots({"/home/u"}, {"", "", ""}));
}

TEST_CASE("a child's TMPDIR is the caller's only where it is writable") {
  test::Folder folder;
  const Host host{"", folder.path(), ""};
  CHECK(sandbox::child_tmpdir({"/tmp", folder.path()}, host) == folder.path());
  CHECK(sandbox::child_tmpdir({"/tmp"}, host) == "/tmp");
  CHECK(sandbox::child_tmpdir({}, host) == "/tmp");
  CHECK(sandbox::child_tmpdir({"/tmp"}, {"", "", ""}) == "/tmp");
}

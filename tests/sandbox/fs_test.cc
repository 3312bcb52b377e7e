#include "sandbox/fs.h"

#include <sys/xattr.h>

#include <chrono>
#include <thread>

#include "sandbox/fs_posix.h"
#include "tests/sandbox/support.h"

using namespace sandbox;
using test::Folder;
using test::put;
using test::slurp;

namespace {

Policy policy(Mode mode, const std::string& root) {
  Policy result;
  result.mode = mode;
  result.workspace_root = root;
  result.session_id = "s";
  return result;
}

Host host() {
  Host result;
  result.home = "/nonexistent";
  result.state_dir = "/var/tmp/acp-test-no-such-state";
  return result;
}

unsigned mode_of(const std::string& path) {
  struct stat status {};
  REQUIRE(stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

std::size_t entries(const std::string& folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

// The workspace and, beside it, what must not change.
struct World {
  Folder folder;
  std::string root = folder / "ws", outside = folder / "outside";
  std::unique_ptr<Fs> fs = make_fenced_fs(host());
  World() {
    std::filesystem::create_directory(root);
    std::filesystem::create_directory(outside);
    put(outside + "/kept", "kept");
  }
  base::Result<WriteResult> write(const std::string& path, Mode mode = Mode::workspace_write) {
    return fs->write({path, "new", std::nullopt}, policy(mode, root));
  }
  void refused(const std::string& path, Mode mode = Mode::workspace_write) {
    INFO(path);
    const auto result = write(path, mode);
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().code == base::ErrorCode::fs_sandbox_denied);
    CHECK(result.error().message.find(std::string(mode_name(mode)) + " mode") != std::string::npos);
    CHECK(entries(outside) == 1);
    CHECK(slurp(outside + "/kept") == "kept");
  }
};

}  // namespace

TEST_CASE("mode bits are lost") {
  const Folder folder;
  const auto fs = make_local_fs();
  for (const unsigned mode : {0755u, 0600u, 02755u, 0444u}) {
    const std::string path = folder / ("f" + std::to_string(mode));
    put(path, "old");
    REQUIRE(chmod(path.c_str(), mode) == 0);
    REQUIRE(fs->write({path, "new", sha256_hex("old")}, policy(Mode::danger_full_access, "")).has_value());
    CHECK(mode_of(path) == mode);
    CHECK(slurp(path) == "new");
  }
}

TEST_CASE("owner, attributes and ACL are lost") {
  const Folder folder;
  const auto fs = make_local_fs();
  const std::string path = folder / "f";
  put(path, "old");
  const bool attributes = setxattr(path.c_str(), "user.note", "kept", 4, 0) == 0;
  // user::rw- user:1:r-- group::r-- mask::r-- other::---
  const unsigned char acl[] = {2, 0, 0,   0,   1,   0,   6,  0, 255, 255, 255, 255, 2,   0,  4,
                               0, 1, 0,   0,   0,   4,   0,  4, 0,   255, 255, 255, 255, 16, 0,
                               4, 0, 255, 255, 255, 255, 32, 0, 0,   0,   255, 255, 255, 255};
  const bool acls = setxattr(path.c_str(), "system.posix_acl_access", acl, sizeof acl, 0) == 0;
  if (geteuid() == 0) REQUIRE(chown(path.c_str(), 1, 2) == 0);
  REQUIRE(fs->write({path, "new", sha256_hex("old")}, policy(Mode::danger_full_access, "")).has_value());
  struct stat status {};
  REQUIRE(stat(path.c_str(), &status) == 0);
  CHECK(status.st_uid == (geteuid() == 0 ? 1 : geteuid()));
  CHECK(status.st_gid == (geteuid() == 0 ? 2 : getegid()));
  char value[64];
  if (attributes) CHECK(getxattr(path.c_str(), "user.note", value, sizeof value) == 4);
  if (acls)
    CHECK(getxattr(path.c_str(), "system.posix_acl_access", value, sizeof value) == static_cast<ssize_t>(sizeof acl));
}

TEST_CASE("a symlink is kept and its file changed, also one whose file is not there yet") {
  const Folder folder;
  const auto fs = make_local_fs();
  put(folder / "real", "old");
  std::filesystem::create_symlink("real", folder / "link");
  std::filesystem::create_symlink("later", folder / "dangling");
  const auto result = fs->write({folder / "link", "new", sha256_hex("old")}, policy(Mode::danger_full_access, ""));
  REQUIRE(result.has_value());
  CHECK(result->canonical_path == folder / "real");
  REQUIRE(fs->write({folder / "dangling", "made", std::nullopt}, policy(Mode::danger_full_access, "")).has_value());
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(std::filesystem::is_symlink(folder / "dangling"));
  CHECK(slurp(folder / "real") == "new");
  CHECK(slurp(folder / "later") == "made");
}

TEST_CASE("a stale or concurrent change is overwritten") {
  const Folder folder;
  const auto fs = make_local_fs();
  const Policy all = policy(Mode::danger_full_access, "");
  const std::string path = folder / "f";
  put(path, "aaaa");
  const std::string seen = fs->read(path)->hash;
  struct stat before {};
  REQUIRE(stat(path.c_str(), &before) == 0);
  put(path, "bbbb");  // same size, and the same time:
  const timespec times[] = {before.st_atim, before.st_mtim};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  CHECK(fs->write({path, "new", seen}, all).error().code == base::ErrorCode::fs_stale_version);
  CHECK(slurp(path) == "bbbb");
  CHECK(fs->write({path, "new", std::nullopt}, all).error().code == base::ErrorCode::fs_stale_version);
  CHECK(slurp(path) == "bbbb");
  CHECK(fs->write({folder / "gone", "new", seen}, all).error().code == base::ErrorCode::fs_stale_version);
  CHECK(entries(folder.path()) == 1);  // and no temporary file
}

TEST_CASE("missing parents are made and nothing is left over") {
  const Folder folder;
  const auto fs = make_local_fs();
  const auto result = fs->write({folder / "a/b/c", "new", std::nullopt}, policy(Mode::danger_full_access, ""));
  REQUIRE(result.has_value());
  CHECK(result->old_hash.empty());
  CHECK(result->new_hash == sha256_hex("new"));
  CHECK(entries(folder / "a/b") == 1);
}

TEST_CASE("a reader sees the old file or the new one") {
  const Folder folder;
  const auto fs = make_local_fs();
  const std::string path = folder / "f";
  const std::string a(200'000, 'a'), b(200'000, 'b');
  put(path, a);
  std::atomic<bool> done{false};
  std::atomic<int> torn{0};
  std::thread reader([&] {
    while (!done) {
      const std::string now = slurp(path);
      if (now != a && now != b) ++torn;
    }
  });
  std::string have = a;
  for (int i = 0; i < 50; ++i) {
    const std::string& next = have == a ? b : a;
    const auto result = fs->write({path, next, sha256_hex(have)}, policy(Mode::danger_full_access, ""));
    if (!result) break;
    have = next;
  }
  done = true;
  reader.join();
  CHECK(torn == 0);
}

TEST_CASE("only regular files are read, and nothing blocks") {
  const Folder folder;
  const auto fs = make_local_fs();
  REQUIRE(mkfifo((folder / "fifo").c_str(), 0600) == 0);
  const auto message = [&](const std::string& path) {
    const auto result = fs->read(path);
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().code == base::ErrorCode::invalid_argument);
    return result.error().message;
  };
  CHECK(message(folder / "fifo").find("a FIFO") != std::string::npos);
  CHECK(message(folder.path()).find("a folder") != std::string::npos);
  CHECK(message("/dev/null").find("a device") != std::string::npos);
  CHECK(fs->read(folder / "none").error().code == base::ErrorCode::not_found);
  CHECK(fs->write({folder / "fifo", "x", sha256_hex("")}, policy(Mode::danger_full_access, "")).error().code ==
        base::ErrorCode::invalid_argument);
}

TEST_CASE("a file that is too large is refused with what to use instead") {
  const Folder folder;
  put(folder / "big", "");
  REQUIRE(truncate((folder / "big").c_str(), static_cast<off_t>(fs_read_limit) + 1) == 0);
  const auto result = make_local_fs()->read(folder / "big");
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == base::ErrorCode::limit);
  CHECK(result.error().message.find("bash") != std::string::npos);
}

TEST_CASE("the agent's own memory and environment are not readable through /proc") {
  const auto fs = make_local_fs();
  const std::string pid = std::to_string(getpid());
  for (const std::string& path :
       {std::string("/proc/self/environ"), "/proc/" + pid + "/maps", std::string("/proc/thread-self/environ"),
        "/proc/" + pid + "/task/" + pid + "/environ"}) {
    INFO(path);
    CHECK(fs->read(path).error().code == base::ErrorCode::fs_permission_denied);
  }
  CHECK(fs->read("/proc/version").has_value());
}

TEST_CASE("the fence: what lies in the workspace may change") {
  World world;
  CHECK(world.write(world.root + "/a").has_value());
  CHECK(world.write(world.root + "/sub/dir/b").has_value());
  CHECK(world.write(world.root + "/sub/../c").has_value());
  std::filesystem::create_symlink(world.root, world.folder / "alias");  // another spelling of the root itself
  CHECK(world.write(world.folder / "alias/d").has_value());
  std::filesystem::create_symlink("sub", world.root + "/inner");
  CHECK(world.write(world.root + "/inner/e").has_value());
  CHECK(slurp(world.root + "/sub/e") == "new");
}

TEST_CASE("the fence: nothing else may") {
  World world;
  std::filesystem::create_symlink(world.outside, world.root + "/out");
  std::filesystem::create_symlink(world.outside + "/kept", world.root + "/file");
  std::filesystem::create_symlink(world.outside + "/fresh", world.root + "/dangling");
  std::filesystem::create_directory(world.folder / "ws-sibling");
  world.refused(world.outside + "/x");
  world.refused(world.root + "/../outside/x");
  world.refused(world.root + "/out/x");
  world.refused(world.root + "/out/kept");
  world.refused(world.root + "/out/new/folder/x");
  world.refused(world.root + "/file");
  world.refused(world.root + "/dangling");
  world.refused(world.folder / "ws-sibling/x");
  world.refused("/etc/acp-agent-test");
  world.refused("/proc/self/root" + world.outside + "/x");
  world.refused("/proc/self/cwd/x");
}

TEST_CASE("the fence: read-only refuses everything, danger-full-access nothing") {
  World world;
  world.refused(world.root + "/a", Mode::read_only);
  world.refused("/tmp/acp-agent-test-never", Mode::read_only);
  CHECK(entries(world.root) == 0);
  CHECK(world.write(world.outside + "/x", Mode::danger_full_access).has_value());
}

TEST_CASE("the fence: the agent's state is refused below a root, and so is what is protected") {
  World world;
  Host with_state = host();
  with_state.state_dir = world.root + "/.local/state/acp-agent";
  world.fs = make_fenced_fs(with_state);
  world.refused(with_state.state_dir + "/sessions/x");
  CHECK(world.write(world.root + "/.local/other").has_value());
  Policy guarded = policy(Mode::workspace_write, world.root);
  guarded.protect = {".git/hooks"};
  std::filesystem::create_directories(world.root + "/.git");
  CHECK(world.fs->write({world.root + "/.git/hooks/pre-commit", "x", std::nullopt}, guarded).error().code ==
        base::ErrorCode::fs_sandbox_denied);
  CHECK(world.fs->write({world.root + "/.git/info", "x", std::nullopt}, guarded).has_value());
}

TEST_CASE("the fence reads everywhere in every mode") {
  World world;
  CHECK(world.fs->read(world.outside + "/kept")->bytes == "kept");
}

TEST_CASE("the fence: a hard link in the workspace is no way to the file outside") {
  World world;
  REQUIRE(link((world.outside + "/kept").c_str(), (world.root + "/hard").c_str()) == 0);
  REQUIRE(world.fs->write({world.root + "/hard", "new", sha256_hex("kept")}, policy(Mode::workspace_write, world.root))
              .has_value());
  CHECK(slurp(world.root + "/hard") == "new");
  CHECK(slurp(world.outside + "/kept") == "kept");
}

TEST_CASE("a folder on the way that became a symlink is noticed, in the root and below it") {
  World world;
  std::filesystem::create_symlink(world.outside, world.root + "/swapped");
  for (const std::string below : {"swapped", "swapped/new"}) {
    const auto result = open_folder(world.root, below);
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().code == base::ErrorCode::busy);
  }
  std::filesystem::create_symlink(world.root, world.folder / "root-link");
  CHECK(open_folder(world.folder / "root-link", "").error().code == base::ErrorCode::busy);
  CHECK(entries(world.outside) == 1);
}

TEST_CASE("a workspace root that was moved away and replaced by a link is not the workspace") {
  World world;
  std::filesystem::rename(world.root, world.folder / "moved");
  std::filesystem::create_symlink(world.outside, world.root);
  CHECK(world.write(world.root + "/x").error().code == base::ErrorCode::sandbox_unavailable);
  CHECK(entries(world.outside) == 1);
}

TEST_CASE("a folder that is swapped all the time never lets a write out") {
  World world;
  std::filesystem::create_directory(world.root + "/dir");
  std::filesystem::create_symlink(world.outside, world.root + "/link");
  std::atomic<bool> done{false};
  std::thread swapper([&] {
    while (!done)
      renameat2(AT_FDCWD, (world.root + "/dir").c_str(), AT_FDCWD, (world.root + "/link").c_str(), RENAME_EXCHANGE);
  });
  int written = 0;
  // One that gets through shows that the others were not refused for another reason; on a slow machine it takes longer.
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (int i = 0; i < 400 || (written == 0 && std::chrono::steady_clock::now() < patience); ++i)
    written += world.write(world.root + "/dir/f" + std::to_string(i)).has_value() ? 1 : 0;
  done = true;
  swapper.join();
  CHECK(entries(world.outside) == 1);
  CHECK(written > 0);
}

TEST_CASE("a file in a folder that takes no new one is written in place") {
  if (geteuid() != 0) {
    const Folder folder;
    std::filesystem::create_directory(folder / "closed");
    put(folder / "closed/f", "old and longer");
    REQUIRE(chmod((folder / "closed").c_str(), 0555) == 0);
    const auto fs = make_local_fs();
    CHECK(fs->write({folder / "closed/f", "new", sha256_hex("old and longer")}, policy(Mode::danger_full_access, ""))
              .has_value());
    CHECK(slurp(folder / "closed/f") == "new");
    CHECK(fs->write({folder / "closed/g", "new", std::nullopt}, policy(Mode::danger_full_access, "")).error().code ==
          base::ErrorCode::fs_permission_denied);
    REQUIRE(chmod((folder / "closed").c_str(), 0755) == 0);
  }
}

TEST_CASE("files in memory follow the same rules") {
  const auto fs = make_memory_fs(true);
  const Policy ws = policy(Mode::workspace_write, "/ws");
  REQUIRE(fs->write({"/ws/a", "1", std::nullopt}, ws).has_value());
  CHECK(fs->write({"/ws/a", "2", std::nullopt}, ws).error().code == base::ErrorCode::fs_stale_version);
  CHECK(fs->write({"/ws/a", "2", sha256_hex("1")}, ws).has_value());
  CHECK(fs->write({"/ws/../x", "2", std::nullopt}, ws).error().code == base::ErrorCode::fs_sandbox_denied);
  CHECK(fs->write({"/ws/b", "2", std::nullopt}, policy(Mode::read_only, "/ws")).error().code ==
        base::ErrorCode::fs_sandbox_denied);
  CHECK(fs->read("/ws/a")->bytes == "2");
  CHECK_FALSE(fs->exists("/x"));
}

TEST_CASE("the hash is SHA-256") {
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

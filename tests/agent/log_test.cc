#include "agent/log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/agent/support.h"

namespace {

using agent::LogFile;
using base::ErrorCode;

unsigned mode_of(const std::string& path) {
  struct stat info {};
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

}  // namespace

TEST_CASE("a log lies in private folders under the root", "[log]") {
  const test::Folder folder;
  const ::mode_t before = ::umask(0);
  auto log = LogFile::create(folder / "state/sessions", agent::cwd_slug("/home/me/my proj"), "id-1");
  ::umask(before);
  REQUIRE(log.has_value());
  CHECK((*log)->folder() ==
        folder / "state/sessions/home-me-my-proj-" + agent::cwd_slug("/home/me/my proj").substr(16) + "/id-1");
  CHECK(mode_of(folder / "state/sessions") == 0700);
  CHECK(mode_of((*log)->folder()) == 0700);
  CHECK(mode_of((*log)->path()) == 0600);
  CHECK(mode_of((*log)->folder() + "/session.lock") == 0600);
  CHECK((*log)->append("one").has_value());
  CHECK((*log)->append("two\nthree").has_value());
  CHECK((*log)->sync().has_value());
  CHECK(test::slurp((*log)->path()) == "one\ntwo\nthree\n");
  CHECK(LogFile::create(folder / "state/sessions", agent::cwd_slug("/home/me/my proj"), "id-1").error().code ==
        ErrorCode::busy);
  log->reset();
  CHECK(LogFile::create(folder / "state/sessions", agent::cwd_slug("/home/me/my proj"), "id-1").error().code ==
        ErrorCode::already_exists);
}

TEST_CASE("slugs tell folders apart and fit a name", "[log]") {
  CHECK(agent::cwd_slug("/a/b") != agent::cwd_slug("/a-b"));
  const std::string slug = agent::cwd_slug("/" + std::string(3000, 'x') + "/\n\xff..");
  CHECK(slug.size() < 100);
  CHECK(slug.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") ==
        std::string::npos);
}

TEST_CASE("one writer: another process is told who has it", "[log]") {
  const test::Folder folder;
  auto log = LogFile::create(folder / "sessions", "s", "id");
  REQUIRE(log.has_value());
  auto second = LogFile::open((*log)->folder());
  REQUIRE_FALSE(second.has_value());
  CHECK(second.error().code == ErrorCode::busy);
  CHECK(test::has(second.error().message, "process " + std::to_string(::getpid())));

  const pid_t child = ::fork();
  if (child == 0) ::_exit(LogFile::open((*log)->folder()).error().code == ErrorCode::busy ? 0 : 1);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);

  const std::string path = (*log)->folder();
  log->reset();
  CHECK(LogFile::open(path).has_value());
}

TEST_CASE("the lock ends with its process, however that ended", "[log]") {
  const test::Folder folder;
  base::Pipe ready = std::move(*base::make_pipe());
  const pid_t child = ::fork();
  if (child == 0) {
    auto log = LogFile::create(folder / "sessions", "s", "id");
    (void)(*log)->append("a whole line");
    (void)!::write(ready.write.get(), "x", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  REQUIRE(::read(ready.read.get(), &byte, 1) == 1);
  CHECK(LogFile::open(folder / "sessions/s/id").error().code == ErrorCode::busy);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  auto log = LogFile::open(folder / "sessions/s/id");
  REQUIRE(log.has_value());
  CHECK(*(*log)->read() == "a whole line\n");
}

TEST_CASE("a torn tail is cut at every byte of the last line", "[log]") {
  const test::Folder folder;
  std::string path;
  {
    auto log = LogFile::create(folder / "sessions", "s", "id");
    REQUIRE(log.has_value());
    path = (*log)->folder();
  }
  const std::string whole = "first\n", last = "the second line";
  for (std::size_t kept = 0; kept <= last.size(); ++kept) {
    test::put(path + "/session.jsonl", whole + last.substr(0, kept));
    auto log = LogFile::open(path);
    REQUIRE(log.has_value());
    CHECK((*log)->cut() == kept);
    CHECK(*(*log)->read() == whole);
    CHECK((*log)->append("next").has_value());
    CHECK(test::slurp(path + "/session.jsonl") == whole + "next\n");
  }
}

TEST_CASE("a torn tail longer than one read is cut too", "[log]") {
  const test::Folder folder;
  std::string path = (*LogFile::create(folder / "sessions", "s", "id"))->folder();
  test::put(path + "/session.jsonl", "first\n" + std::string(200'000, 'x'));
  CHECK(*(*LogFile::open(path))->read() == "first\n");
  test::put(path + "/session.jsonl", std::string(200'000, '\0'));  // what a power cut may leave
  CHECK((*LogFile::open(path))->read()->size() == 200'000);
}

TEST_CASE("short writes are continued", "[log]") {
  const test::Folder folder;
  agent::LogSystem system;
  int calls = 0;
  system.write = [&](int fd, const char* bytes, std::size_t size) -> ssize_t {
    if (++calls % 3 == 0) {
      errno = EINTR;
      return -1;
    }
    return ::write(fd, bytes, std::min<std::size_t>(size, 2));
  };
  auto log = LogFile::create(folder / "sessions", "s", "id", system);
  REQUIRE(log.has_value());
  CHECK((*log)->append("a line of some length").has_value());
  CHECK(test::slurp((*log)->path()) == "a line of some length\n");
}

TEST_CASE("a failed write poisons the log, and its half line is cut on the next open", "[log]") {
  const test::Folder folder;
  agent::LogSystem system;
  bool full = false;
  system.write = [&](int fd, const char* bytes, std::size_t size) -> ssize_t {
    if (!full) return ::write(fd, bytes, size);
    if (size <= 4) {
      errno = ENOSPC;
      return -1;
    }
    return ::write(fd, bytes, size - 4);
  };
  auto log = LogFile::create(folder / "sessions", "s", "id", system);
  REQUIRE(log.has_value());
  CHECK((*log)->append("good").has_value());
  full = true;
  auto failed = (*log)->append("never whole");
  REQUIRE_FALSE(failed.has_value());
  CHECK(failed.error().code == ErrorCode::io);
  CHECK(test::has(failed.error().message, "No space left"));
  full = false;  // space again: what is on disk is unknown, so it stays closed
  CHECK((*log)->append("later").error().message == failed.error().message);
  CHECK((*log)->sync().error().message == failed.error().message);
  const std::string path = (*log)->folder();
  log->reset();
  CHECK(*(*LogFile::open(path))->read() == "good\n");
}

TEST_CASE("a failed sync poisons the log", "[log]") {
  const test::Folder folder;
  agent::LogSystem system;
  system.sync = [](int) {
    errno = EIO;
    return -1;
  };
  auto log = LogFile::create(folder / "sessions", "s", "id", system);
  REQUIRE(log.has_value());
  CHECK((*log)->append("good").has_value());
  CHECK((*log)->sync().error().code == ErrorCode::io);
  CHECK_FALSE((*log)->append("more").has_value());
}

TEST_CASE("nothing at or below the root is reached through a link", "[log]") {
  const test::Folder folder;
  std::filesystem::create_directory(folder / "elsewhere");
  SECTION("the root") { std::filesystem::create_symlink(folder / "elsewhere", folder / "sessions"); }
  SECTION("the slug") {
    std::filesystem::create_directory(folder / "sessions");
    std::filesystem::create_symlink(folder / "elsewhere", folder / "sessions/s");
  }
  SECTION("the session") {
    std::filesystem::create_directories(folder / "sessions/s");
    std::filesystem::create_symlink(folder / "elsewhere", folder / "sessions/s/id");
  }
  auto log = LogFile::create(folder / "sessions", "s", "id");
  REQUIRE_FALSE(log.has_value());
  CHECK(test::has(log.error().message, "symbolic link"));
  CHECK(std::filesystem::is_empty(folder / "elsewhere"));
}

TEST_CASE("a linked file is not opened", "[log]") {
  const test::Folder folder;
  const std::string path = (*LogFile::create(folder / "sessions", "s", "id"))->folder();
  test::put(folder / "victim", "precious");
  const char* name = GENERATE("session.jsonl", "session.lock");
  std::filesystem::remove(path + "/" + name);
  std::filesystem::create_symlink(folder / "victim", path + "/" + name);
  CHECK_FALSE(LogFile::open(path).has_value());
  if (std::string(name) == "session.jsonl") CHECK_FALSE(agent::read_log_bytes(path + "/session.jsonl").has_value());
  CHECK(test::slurp(folder / "victim") == "precious");
}

TEST_CASE("a link above the state folder is followed when this user or root made it", "[log]") {
  const test::Folder folder;
  std::filesystem::create_directory(folder / "real");
  std::filesystem::create_symlink(folder / "real", folder / "home");
  CHECK(LogFile::create(folder / "home/state/sessions", "s", "id").has_value());
  if (::geteuid() == 0) {
    REQUIRE(::lchown((folder / "home").c_str(), 65534, 65534) == 0);
    CHECK(test::has(LogFile::create(folder / "home/state/sessions", "s", "id2").error().message, "symbolic link"));
  }
}

TEST_CASE("folders of others and shared folders are refused, open ones are closed", "[log]") {
  const test::Folder folder;
  std::filesystem::create_directory(folder / "sessions");
  REQUIRE(::chmod((folder / "sessions").c_str(), 0777) == 0);
  CHECK(LogFile::create(folder / "sessions", "s", "id").has_value());
  CHECK(mode_of(folder / "sessions") == 0700);
  REQUIRE(::chmod((folder / "sessions").c_str(), 01777) == 0);
  CHECK(test::has(LogFile::create(folder / "sessions", "s", "id2").error().message, "share"));
  CHECK(mode_of(folder / "sessions") == 01777);
  if (::geteuid() == 0) {
    REQUIRE(::chmod((folder / "sessions").c_str(), 0700) == 0);
    REQUIRE(::chown((folder / "sessions/s").c_str(), 65534, 65534) == 0);
    CHECK(test::has(LogFile::create(folder / "sessions", "s", "id3").error().message, "another user"));
  }
}

TEST_CASE("ids that could name another place are refused", "[log]") {
  const test::Folder folder;
  for (const char* id : {"", ".", "..", "a/b", "a.b", "\n"}) {
    CHECK_FALSE(LogFile::create(folder / "sessions", "s", id).has_value());
    CHECK(agent::find_log({folder / "sessions"}, id).error().code == ErrorCode::not_found);
  }
  CHECK_FALSE(LogFile::create("relative/sessions", "s", "id").has_value());
  CHECK_FALSE(LogFile::create(folder / "x/../sessions", "s", "id").has_value());
}

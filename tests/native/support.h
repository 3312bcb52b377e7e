// What the tests of the two helpers share: a folder that goes away, one child run to its end, and a FIFO that tells
// when the last process that holds it is gone.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/child.h"
#include "base/fd.h"
#include "tests/folder.h"

namespace test {

inline std::string helper(const std::string& name) {
  auto path = base::helper_path(name);
  REQUIRE(path);
  return *path;
}

inline std::chrono::steady_clock::time_point within(int seconds) {
  return std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
}

// A command that opens it for writing and hands it on holds it; gone() waits until nobody does.
class Alive {
 public:
  explicit Alive(std::string path) : path_(std::move(path)) {
    REQUIRE(mkfifo(path_.c_str(), 0666) == 0);
    fd_ = base::Fd(open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    REQUIRE(fd_);
  }
  const std::string& path() const { return path_; }
  // Waits for a byte: the command is up.
  bool up() { return byte(20'000) == 1; }
  bool gone() {
    const auto end = within(20);
    while (std::chrono::steady_clock::now() < end) {
      if (byte(1'000) == 0) return true;
    }
    return false;
  }

 private:
  // 1: a byte, 0: no writer is left, -1: nothing yet.
  int byte(int ms) {
    pollfd set{fd_.get(), POLLIN, 0};
    if (poll(&set, 1, ms) <= 0) return -1;
    char one;
    return static_cast<int>(::read(fd_.get(), &one, 1));
  }
  std::string path_;
  base::Fd fd_;
};

inline base::ChildOptions options(std::vector<std::string> argv) {
  base::ChildOptions result;
  result.argv = std::move(argv);
  result.env = {{"PATH", "/usr/bin:/bin"}, {"LC_ALL", "C"}};
  result.cwd = "/";
  result.call_init = helper("call-init");
  return result;
}

inline base::ChildOptions bash(const std::string& script) { return options({"/bin/bash", "-c", script}); }

inline std::string drain(int fd) {
  std::string text;
  const base::StopFd never{std::stop_token()};
  for (char buffer[4096]; base::wait_fd(fd, POLLIN, never, within(20));) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n == 0) return text;
    if (n > 0) text.append(buffer, static_cast<std::size_t>(n));
  }
  FAIL("a pipe was not closed in time; so far: " << text);
  return text;
}

struct Outcome {
  base::ChildExit exit;
  std::string out, err, launcher;
  int stragglers = 0;
};

inline base::ChildExit wait(base::Child& child) {
  const base::StopFd never{std::stop_token()};
  auto exit = child.wait_exit(never, within(20));
  REQUIRE(exit);
  return *exit;
}

inline Outcome follow(base::Child& child) {
  Outcome outcome;
  outcome.exit = wait(child);
  outcome.stragglers = child.finish();
  if (child.out() >= 0) outcome.out = drain(child.out());
  if (child.err() >= 0) outcome.err = drain(child.err());
  if (child.launcher_status() >= 0) outcome.launcher = drain(child.launcher_status());
  return outcome;
}

inline Outcome run(const base::ChildOptions& wanted) {
  auto child = base::Child::start(wanted);
  REQUIRE(child);
  return follow(**child);
}

}  // namespace test

#include "base/fd.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "base/thread.h"

using namespace std::chrono_literals;

namespace {

struct TempDir {
  TempDir() {
    std::string pattern = "/var/tmp/fd_test.XXXXXX";
    path = ::mkdtemp(pattern.data());
  }
  ~TempDir() { std::filesystem::remove_all(path); }
  std::string path;
};

}  // namespace

TEST_CASE("an Fd closes what it owns, once") {
  auto pipe = base::make_pipe();
  REQUIRE(pipe);
  CHECK((::fcntl(pipe->read.get(), F_GETFD) & FD_CLOEXEC) != 0);
  const int number = pipe->read.get();
  base::Fd moved = std::move(pipe->read);
  CHECK(moved.get() == number);
  moved.reset();
  CHECK(::fcntl(number, F_GETFD) == -1);
}

TEST_CASE("wait_fd tells ready, stopped and late apart") {
  auto pipe = base::make_pipe();
  REQUIRE(pipe);
  std::stop_source source;
  const base::StopFd stop(source.get_token());

  const auto late = base::wait_fd(pipe->read.get(), POLLIN, stop, std::chrono::steady_clock::now() + 5ms);
  REQUIRE_FALSE(late);
  CHECK(late.error().code == base::ErrorCode::timed_out);

  REQUIRE(base::write_all(pipe->write.get(), "x"));
  CHECK(base::wait_fd(pipe->read.get(), POLLIN, stop));

  source.request_stop();
  const auto stopped = base::wait_fd(pipe->read.get(), POLLIN, stop);
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == base::ErrorCode::cancelled);
}

TEST_CASE("a stop from another thread ends a wait without deadline") {
  auto pipe = base::make_pipe();
  REQUIRE(pipe);
  std::stop_source source;
  const base::StopFd stop(source.get_token());
  base::Thread stopper("stopper", [&] { source.request_stop(); });
  const auto waited = base::wait_fd(pipe->read.get(), POLLIN, stop);
  REQUIRE_FALSE(waited);
  CHECK(waited.error().code == base::ErrorCode::cancelled);
}

TEST_CASE("wait_fd returns on a hang-up") {
  auto pipe = base::make_pipe();
  REQUIRE(pipe);
  pipe->write.reset();
  CHECK(base::wait_fd(pipe->read.get(), POLLIN, base::StopFd(std::stop_token{})));
}

TEST_CASE("write_all finishes on a non-blocking descriptor") {
  auto pipe = base::make_pipe();
  REQUIRE(pipe);
  REQUIRE(::fcntl(pipe->write.get(), F_SETFL, O_NONBLOCK) == 0);
  const std::string bytes(1 << 20, 'x');
  std::size_t got = 0;
  base::Thread reader("reader", [&] {
    std::string chunk(5000, '\0');
    while (got < bytes.size()) {
      const ssize_t n = ::read(pipe->read.get(), chunk.data(), chunk.size());
      if (n <= 0) break;
      got += static_cast<std::size_t>(n);
    }
  });
  CHECK(base::write_all(pipe->write.get(), bytes));
  reader.join();
  CHECK(got == bytes.size());
}

TEST_CASE("files are read up to a limit") {
  const TempDir dir;
  const std::string path = dir.path + "/file";
  REQUIRE(base::write_file(path, "hello", 0600));
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  CHECK(base::read_file(path, 5).value() == "hello");
  const auto too_long = base::read_file(path, 4);
  REQUIRE_FALSE(too_long);
  CHECK(too_long.error().code == base::ErrorCode::limit);
  REQUIRE(base::write_file(path, "a", 0600));
  CHECK(base::read_file(path, 5).value() == "a");
  CHECK(base::read_file("/proc/self/status", 1 << 20).value().size() > 100);  // its size says 0
  CHECK(base::read_file("/proc/self/status", 10).error().code == base::ErrorCode::limit);
}

TEST_CASE("read_file refuses what is no regular file, without blocking") {
  const TempDir dir;
  const std::string fifo = dir.path + "/fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(base::read_file(fifo, 10).error().code == base::ErrorCode::invalid_argument);
  CHECK(base::read_file(dir.path, 10).error().code == base::ErrorCode::invalid_argument);
  CHECK(base::read_file("/dev/zero", 10).error().code == base::ErrorCode::invalid_argument);
  const auto absent = base::read_file(dir.path + "/absent", 10);
  CHECK(absent.error().code == base::ErrorCode::not_found);
  CHECK_THAT(absent.error().message, Catch::Contains("/absent"));
}

#include "base/line_transport.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <string>

#include "base/thread.h"

using namespace std::chrono_literals;
using base::ReadLine;

namespace {

constexpr auto patient = 20s;

// A transport whose input a test feeds and whose output a test reads, through blocking pipes as an editor gives us.
struct Piped {
  explicit Piped(std::size_t limit = base::max_line_bytes) {
    base::Pipe to = base::make_pipe().value();
    base::Pipe from = base::make_pipe().value();
    feed = std::move(to.write);
    taken = std::move(from.read);
    transport = base::fd_transport(std::move(to.read), std::move(from.write), limit);
  }
  base::Fd feed, taken;
  std::unique_ptr<base::LineTransport> transport;
};

std::string read_available(int fd) {
  std::string all(1 << 20, '\0');
  const ssize_t n = ::read(fd, all.data(), all.size());
  all.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return all;
}

}  // namespace

TEST_CASE("lines come apart at line ends, whatever the pieces") {
  Piped piped;
  REQUIRE(base::write_all(piped.feed.get(), "one\ntwo\r\n\nthr"));
  std::string line;
  CHECK(piped.transport->read(line) == ReadLine::line);
  CHECK(line == "one");
  CHECK(piped.transport->read(line) == ReadLine::line);
  CHECK(line == "two");
  CHECK(piped.transport->read(line) == ReadLine::line);
  CHECK(line.empty());
  REQUIRE(base::write_all(piped.feed.get(), "ee\nlast"));
  piped.feed.reset();
  CHECK(piped.transport->read(line) == ReadLine::line);
  CHECK(line == "three");
  CHECK(piped.transport->read(line) == ReadLine::line);
  CHECK(line == "last");
  CHECK(piped.transport->read(line) == ReadLine::end);
  CHECK(piped.transport->read(line) == ReadLine::end);
}

TEST_CASE("a line of exactly the limit is read, one byte more is skipped") {
  Piped piped(100);
  const std::string fits(100, 'a'), over(101, 'b'), endless(5000, 'c');
  for (const std::string& text : {fits + "\n", over + "\nnext\n", endless}) {
    REQUIRE(base::write_all(piped.feed.get(), text));
  }
  piped.feed.reset();
  std::string line;
  CHECK(piped.transport->read(line) == ReadLine::line);
  CHECK(line == std::string(100, 'a'));
  CHECK(piped.transport->read(line) == ReadLine::too_long);
  CHECK(piped.transport->read(line) == ReadLine::line);
  CHECK(line == "next");
  CHECK(piped.transport->read(line) == ReadLine::too_long);
  CHECK(piped.transport->read(line) == ReadLine::end);
}

TEST_CASE("an endless line is skipped in bounded memory") {
  Piped piped(1 << 20);
  base::Thread feeder("feeder", [&] {
    const std::string chunk(1 << 20, 'x');
    for (int i = 0; i < 200; ++i) (void)base::write_all(piped.feed.get(), chunk);
    (void)base::write_all(piped.feed.get(), "\nafter\n");
  });
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  std::string line;
  CHECK(piped.transport->read(line) == ReadLine::too_long);
  ::getrusage(RUSAGE_SELF, &after);
  CHECK(after.ru_maxrss - before.ru_maxrss < 100 << 10);  // KB; the line was 200 MB
  CHECK(piped.transport->read(line) == ReadLine::line);
  CHECK(line == "after");
}

TEST_CASE("a large line passes whole, and the descriptors' flags stay as they were") {
  Piped piped;
  const std::string large(3 << 20, 'y');
  std::string got;
  base::Thread reader("reader", [&] {
    while (got.size() < large.size() + 1) {
      const std::string some = read_available(piped.taken.get());
      if (some.empty()) break;
      got += some;
    }
  });
  CHECK(piped.transport->write(large, patient));
  reader.join();
  CHECK(got == large + "\n");
  CHECK((::fcntl(piped.taken.get(), F_GETFL) & O_NONBLOCK) == 0);
  CHECK((::fcntl(piped.feed.get(), F_GETFL) & O_NONBLOCK) == 0);
}

TEST_CASE("a line is written while the descriptor is non-blocking by somebody else's doing") {
  base::Pipe in = base::make_pipe().value();
  base::Pipe out = base::make_pipe().value();
  REQUIRE(::fcntl(in.read.get(), F_SETFL, O_NONBLOCK) == 0);
  REQUIRE(::fcntl(out.write.get(), F_SETFL, O_NONBLOCK) == 0);
  const base::Fd taken = std::move(out.read);
  const base::Fd feed = std::move(in.write);
  auto transport = base::fd_transport(std::move(in.read), std::move(out.write));
  base::Thread feeder("feeder", [&] { (void)base::write_all(feed.get(), "hello\n"); });
  std::string line;
  CHECK(transport->read(line) == ReadLine::line);
  CHECK(line == "hello");
  const std::string large(1 << 20, 'z');
  std::string got;
  base::Thread reader("reader", [&] {
    while (got.size() < large.size() + 1) {
      const std::string some = read_available(taken.get());
      if (some.empty()) break;
      got += some;
    }
  });
  CHECK(transport->write(large, patient));
  reader.join();
  CHECK(got == large + "\n");
}

TEST_CASE("nobody reads: the write gives up after its patience") {
  Piped piped;
  const auto start = std::chrono::steady_clock::now();
  CHECK_FALSE(piped.transport->write(std::string(1 << 20, 'x'), 50ms));
  CHECK(std::chrono::steady_clock::now() - start >= 50ms);
}

TEST_CASE("the reader is gone: the write fails at once") {
  Piped piped;
  piped.taken.reset();
  CHECK_FALSE(piped.transport->write("x", patient));
}

TEST_CASE("sockets work as pipes do") {
  std::array<int, 2> pair{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) == 0);
  base::Fd other(pair[1]);
  auto transport = base::fd_transport(base::Fd(::dup(pair[0])), base::Fd(pair[0]));
  REQUIRE(base::write_all(other.get(), "ping\n"));
  std::string line;
  CHECK(transport->read(line) == ReadLine::line);
  CHECK(line == "ping");
  CHECK(transport->write("pong", patient));
  CHECK(read_available(other.get()) == "pong\n");
  CHECK_FALSE(transport->write(std::string(8 << 20, 'x'), 50ms));
  other.reset();
  CHECK_FALSE(transport->write("x", patient));
  CHECK(transport->read(line) == ReadLine::end);
}

// The same for every transport: one end, and whatever keeps its other side open and silent.
TEST_CASE("close unblocks a reader and a writer; stop_reading only the reader") {
  for (const bool memory : {false, true}) {
    INFO("memory " << memory);
    for (const bool only_reading : {false, true}) {
      Piped piped;
      std::unique_ptr<base::LineTransport> other;
      std::unique_ptr<base::LineTransport> end = std::move(piped.transport);
      if (memory) std::tie(end, other) = base::memory_transport_pair();

      ReadLine read = ReadLine::line;
      base::Thread reader("reader", [&] {
        std::string line;
        read = end->read(line);
      });
      if (only_reading) {
        end->stop_reading();
        reader.join();
        CHECK(read == ReadLine::end);
        CHECK(end->write("still writes", patient));
        continue;
      }
      bool written = true;
      base::Thread writer("writer", [&] {
        while (end->write(std::string(40'000, 'x'), patient)) {
        }
        written = false;
      });
      end->close();
      reader.join();
      writer.join();
      CHECK(read == ReadLine::end);
      CHECK_FALSE(written);
      CHECK_FALSE(end->write("x", patient));
    }
  }
}

TEST_CASE("a memory pair carries lines both ways, in order") {
  auto [left, right] = base::memory_transport_pair();
  std::string line;
  REQUIRE(left->write("one", patient));
  REQUIRE(left->write("two", patient));
  REQUIRE(right->write("back", patient));
  CHECK(right->read(line) == ReadLine::line);
  CHECK(line == "one");
  CHECK(right->read(line) == ReadLine::line);
  CHECK(line == "two");
  CHECK(left->read(line) == ReadLine::line);
  CHECK(line == "back");
}

TEST_CASE("a memory end that goes away is an end of input after what it wrote") {
  auto [left, right] = base::memory_transport_pair();
  REQUIRE(left->write("last", patient));
  left.reset();
  std::string line;
  CHECK(right->read(line) == ReadLine::line);
  CHECK(line == "last");
  CHECK(right->read(line) == ReadLine::end);
  CHECK_FALSE(right->write("x", patient));
}

TEST_CASE("a memory pair is as bounded and as impatient as a pipe") {
  auto [left, right] = base::memory_transport_pair(1000);
  int lines = 0;
  while (lines < 100 && left->write(std::string(10'000, 'x'), 20ms)) ++lines;
  CHECK(lines > 1);
  CHECK(lines < 100);
  std::string line;
  CHECK(right->read(line) == ReadLine::too_long);
  CHECK(left->write("small", patient));
  while (right->read(line) == ReadLine::too_long) {
  }
  CHECK(line == "small");
}

TEST_CASE("stdio_transport takes stdin and stdout away from everyone else") {
  base::Pipe in = base::make_pipe().value();
  base::Pipe out = base::make_pipe().value();
  const base::Fd old_in(::dup(STDIN_FILENO)), old_out(::dup(STDOUT_FILENO)), old_err(::dup(STDERR_FILENO));
  const base::Fd null(::open("/dev/null", O_RDWR));
  const auto restore = [&] {
    ::dup2(old_in.get(), STDIN_FILENO);
    ::dup2(old_out.get(), STDOUT_FILENO);
    ::dup2(old_err.get(), STDERR_FILENO);
  };
  ::dup2(in.read.get(), STDIN_FILENO);
  ::dup2(out.write.get(), STDOUT_FILENO);
  ::dup2(null.get(), STDERR_FILENO);
  auto transport = base::stdio_transport();
  (void)!::write(STDOUT_FILENO, "stray\n", 6);
  char byte = 0;
  const ssize_t from_stdin = ::read(STDIN_FILENO, &byte, 1);
  restore();
  REQUIRE(transport);
  CHECK(from_stdin == 0);
  REQUIRE(base::write_all(in.write.get(), "hello\n"));
  std::string line;
  CHECK((*transport)->read(line) == ReadLine::line);
  CHECK(line == "hello");
  CHECK((*transport)->write("answer", patient));
  CHECK(read_available(out.read.get()) == "answer\n");

  ::close(STDIN_FILENO);
  const bool refused = !base::stdio_transport();
  restore();
  CHECK(refused);
}

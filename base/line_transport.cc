#include "base/line_transport.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <deque>

#include "base/mutex.h"

namespace base {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t read_chunk = 64u << 10;  // what a pipe holds
constexpr std::size_t kept_capacity = 1u << 20;
constexpr std::size_t pipe_atomic = 4096;  // PIPE_BUF: a pipe that poll() calls writable takes so much without blocking

// An eventfd that stays readable once set.
class Signal {
 public:
  Signal() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  void set() {
    set_ = true;
    const std::uint64_t one = 1;
    if (event_) (void)!::write(event_.get(), &one, sizeof one);
  }
  bool is_set() const { return set_; }
  int fd() const { return event_.get(); }

 private:
  Fd event_;
  std::atomic<bool> set_{false};
};

// One read or write that does not block although the descriptor's own flags may be blocking: O_NONBLOCK would belong to
// everyone who shares the open file, the parent's shell included.
class QuietFd {
 public:
  explicit QuietFd(Fd fd) : fd_(std::move(fd)) {
    struct stat info {};
    if (::fstat(fd_.get(), &info) != 0) return;
    socket_ = S_ISSOCK(info.st_mode);
    fifo_ = S_ISFIFO(info.st_mode);
  }
  int get() const { return fd_.get(); }

  // Call when poll() said ready.
  ssize_t read(char* to, std::size_t size) {
    if (socket_) return ::recv(fd_.get(), to, size, MSG_DONTWAIT);
    if (fifo_ && nowait_) {
      iovec part{to, size};
      const ssize_t got = ::preadv2(fd_.get(), &part, 1, -1, RWF_NOWAIT);
      if (got >= 0 || !unsupported(errno)) return got;
      nowait_ = false;
    }
    return ::read(fd_.get(), to, size);
  }

  ssize_t write(std::string_view bytes) {
    if (socket_) return ::send(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (fifo_ && nowait_) {
      iovec part{const_cast<char*>(bytes.data()), bytes.size()};
      const ssize_t put = ::pwritev2(fd_.get(), &part, 1, -1, RWF_NOWAIT);
      if (put >= 0 || !unsupported(errno)) return put;
      nowait_ = false;
    }
    return ::write(fd_.get(), bytes.data(), std::min(bytes.size(), pipe_atomic));
  }

 private:
  // Kernels before 6.4 have no RWF_NOWAIT for pipes.
  static bool unsupported(int error) { return error == EOPNOTSUPP || error == ENOSYS || error == EINVAL; }

  Fd fd_;
  bool socket_ = false, fifo_ = false, nowait_ = true;
};

class FdTransport final : public LineTransport {
 public:
  FdTransport(Fd in, Fd out, std::size_t line_limit)
      : in_(std::move(in)), out_(std::move(out)), line_limit_(line_limit), chunk_(new char[read_chunk]) {}

  ReadLine read(std::string& line) override {
    line.clear();
    for (;;) {
      if (no_more_reads_.is_set()) return ReadLine::end;
      if (const char* end = static_cast<const char*>(std::memchr(chunk_.get() + begin_, '\n', end_ - begin_))) {
        const auto at = static_cast<std::size_t>(end - chunk_.get());
        take(at - begin_);
        begin_ = at + 1;
        return finish(line);
      }
      take(end_ - begin_);
      begin_ = end_ = 0;
      if (ended_ || !fill()) {
        if (no_more_reads_.is_set() || (partial_.empty() && !skipping_)) return ReadLine::end;
        return finish(line);  // a last line without its end
      }
    }
  }

  bool write(std::string_view line, std::chrono::milliseconds patience) override {
    std::string framed;
    framed.reserve(line.size() + 1);
    framed.append(line).push_back('\n');
    std::string_view rest = framed;
    auto deadline = Clock::now() + patience;
    while (!rest.empty()) {
      if (closed_.is_set() || closed_.fd() < 0) return false;
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
      if (left <= 0) return false;
      std::array<pollfd, 2> set{{{out_.get(), POLLOUT, 0}, {closed_.fd(), POLLIN, 0}}};
      const int ready = ::poll(set.data(), set.size(), static_cast<int>(std::min<long long>(left, INT_MAX)));
      if (ready < 0 && errno != EINTR) return false;
      if (ready <= 0) continue;
      if (set[1].revents != 0) return false;
      const ssize_t put = out_.write(rest);
      if (put < 0 && errno != EAGAIN && errno != EINTR) return false;
      if (put > 0) {
        rest.remove_prefix(static_cast<std::size_t>(put));
        deadline = Clock::now() + patience;  // slow is not dead
      }
    }
    return true;
  }

  void stop_reading() override { no_more_reads_.set(); }
  void close() override {
    no_more_reads_.set();
    closed_.set();
  }

 private:
  // Moves `size` bytes of the chunk to the line being read, or drops them when it is over the limit.
  void take(std::size_t size) {
    if (!skipping_ && size > line_limit_ - partial_.size()) {
      skipping_ = true;
      std::string().swap(partial_);
    }
    if (!skipping_) partial_.append(chunk_.get() + begin_, size);
  }

  ReadLine finish(std::string& line) {
    if (std::exchange(skipping_, false)) return ReadLine::too_long;
    if (!partial_.empty() && partial_.back() == '\r') partial_.pop_back();
    line.swap(partial_);
    partial_.clear();
    if (partial_.capacity() > kept_capacity) std::string().swap(partial_);
    return ReadLine::line;
  }

  // False: end of input, or told to stop.
  bool fill() {
    for (;;) {
      if (no_more_reads_.is_set() || no_more_reads_.fd() < 0) return false;
      std::array<pollfd, 2> set{{{in_.get(), POLLIN, 0}, {no_more_reads_.fd(), POLLIN, 0}}};
      if (::poll(set.data(), set.size(), -1) < 0) {
        if (errno == EINTR) continue;
        break;
      }
      if (set[1].revents != 0) return false;
      const ssize_t got = in_.read(chunk_.get(), read_chunk);
      if (got > 0) {
        end_ = static_cast<std::size_t>(got);
        return true;
      }
      if (got == 0 || (errno != EAGAIN && errno != EINTR)) break;
    }
    ended_ = true;
    return false;
  }

  QuietFd in_, out_;
  const std::size_t line_limit_;
  Signal no_more_reads_, closed_;
  // Reader only.
  std::unique_ptr<char[]> chunk_;
  std::size_t begin_ = 0, end_ = 0;  // what of the chunk is not taken yet
  std::string partial_;
  bool skipping_ = false, ended_ = false;
};

constexpr std::size_t memory_channel_bytes = 64u << 10;  // as a pipe; a longer line is taken when the channel is empty

// One direction of a memory pair.
struct Channel {
  Mutex mutex;
  CondVar changed;
  std::deque<std::string> lines GUARDED_BY(mutex);
  std::size_t bytes GUARDED_BY(mutex) = 0;
  bool writer_gone GUARDED_BY(mutex) = false;
  bool reader_gone GUARDED_BY(mutex) = false;
  bool no_more_reads GUARDED_BY(mutex) = false;
};

class MemoryTransport final : public LineTransport {
 public:
  MemoryTransport(std::shared_ptr<Channel> in, std::shared_ptr<Channel> out, std::size_t line_limit)
      : in_(std::move(in)), out_(std::move(out)), line_limit_(line_limit) {}
  ~MemoryTransport() override { MemoryTransport::close(); }

  ReadLine read(std::string& line) override {
    line.clear();
    Lock lock(in_->mutex);
    while (!in_->no_more_reads && in_->lines.empty() && !in_->writer_gone) in_->changed.wait(in_->mutex);
    if (in_->no_more_reads || in_->lines.empty()) return ReadLine::end;
    line = std::move(in_->lines.front());
    in_->lines.pop_front();
    in_->bytes -= line.size();
    in_->changed.notify_all();
    if (line.size() <= line_limit_) return ReadLine::line;
    line.clear();
    return ReadLine::too_long;
  }

  bool write(std::string_view line, std::chrono::milliseconds patience) override {
    const auto deadline = Clock::now() + patience;
    Lock lock(out_->mutex);
    while (!out_->writer_gone && !out_->reader_gone && !out_->lines.empty() &&
           out_->bytes + line.size() > memory_channel_bytes) {
      if (!out_->changed.wait_until(out_->mutex, deadline) && Clock::now() >= deadline) return false;
    }
    if (out_->writer_gone || out_->reader_gone) return false;
    out_->bytes += line.size();
    out_->lines.emplace_back(line);
    out_->changed.notify_all();
    return true;
  }

  void stop_reading() override {
    Lock lock(in_->mutex);
    in_->no_more_reads = true;
    in_->changed.notify_all();
  }

  void close() override {
    {
      Lock lock(in_->mutex);
      in_->no_more_reads = in_->reader_gone = true;
      in_->changed.notify_all();
    }
    Lock lock(out_->mutex);
    out_->writer_gone = true;
    out_->changed.notify_all();
  }

 private:
  const std::shared_ptr<Channel> in_, out_;
  const std::size_t line_limit_;
};

}  // namespace

Result<std::unique_ptr<LineTransport>> stdio_transport() {
  Fd in(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  Fd out(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!in || !out) return fail(ErrorCode::io, "stdin or stdout is closed; the client must open both");
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) return fail_errno("cannot open /dev/null", errno);
  const bool has_stderr = ::fcntl(STDERR_FILENO, F_GETFD) >= 0;
  if (::dup2(null.get(), STDIN_FILENO) < 0 || ::dup2(has_stderr ? STDERR_FILENO : null.get(), STDOUT_FILENO) < 0) {
    return fail_errno("cannot take over stdin and stdout", errno);
  }
  return fd_transport(std::move(in), std::move(out));
}

std::unique_ptr<LineTransport> fd_transport(Fd in, Fd out, std::size_t line_limit) {
  return std::make_unique<FdTransport>(std::move(in), std::move(out), line_limit);
}

std::pair<std::unique_ptr<LineTransport>, std::unique_ptr<LineTransport>> memory_transport_pair(
    std::size_t line_limit) {
  auto there = std::make_shared<Channel>();
  auto back = std::make_shared<Channel>();
  return {std::make_unique<MemoryTransport>(back, there, line_limit),
          std::make_unique<MemoryTransport>(there, back, line_limit)};
}

}  // namespace base

// Owned descriptors and the few blocking calls on them that take a stop token. All descriptors made here are
// close-on-exec. Any thread; an Fd has one owner.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace base {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Fd() { reset(); }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset();
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read;
  Fd write;
};
Result<Pipe> make_pipe();

// A descriptor that becomes readable when the token is stopped, for the poll set of a wait. Keep it alive for the wait.
// Member order matters: the callback is destroyed (and waited for) before the descriptor it writes to.
class StopFd {
 public:
  explicit StopFd(std::stop_token stop);
  int fd() const { return event_.get(); }

 private:
  Fd event_;
  std::optional<std::stop_callback<std::function<void()>>> callback_;
};

// Waits until fd is ready for `events` (POLLIN/POLLOUT), the token stops (cancelled) or the time is over (timed_out).
Result<void> wait_fd(int fd, short events, const StopFd& stop,
                     std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt);

Result<void> write_all(int fd, std::string_view bytes);  // blocking; EINTR retried
Result<std::string> read_file(const std::string& path,
                              std::size_t limit);  // `limit` error when longer; never blocks on a FIFO
Result<void> write_file(const std::string& path, std::string_view bytes,
                        unsigned mode);  // plain create/truncate; tests and helpers

}  // namespace base

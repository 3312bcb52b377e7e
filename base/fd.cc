#include "base/fd.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>

namespace base {
namespace {

// Milliseconds until the deadline for poll(): rounded up, so that a wait never ends early; -1 without a deadline.
int poll_timeout(const std::optional<std::chrono::steady_clock::time_point>& deadline) {
  if (!deadline) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, INT_MAX));
}

}  // namespace

void Fd::reset() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Result<Pipe> make_pipe() {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
  return Pipe{Fd(fds[0]), Fd(fds[1])};
}

StopFd::StopFd(std::stop_token stop) : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  callback_.emplace(std::move(stop), [fd = event_.get()] {
    const std::uint64_t one = 1;
    if (fd >= 0) (void)!::write(fd, &one, sizeof one);
  });
}

Result<void> wait_fd(int fd, short events, const StopFd& stop,
                     std::optional<std::chrono::steady_clock::time_point> deadline) {
  // Without its event descriptor a wait could not be stopped: refuse it.
  if (stop.fd() < 0) return fail(ErrorCode::io, "cannot wait: too many open files");
  for (;;) {
    std::array<pollfd, 2> set{{{fd, events, 0}, {stop.fd(), POLLIN, 0}}};
    const int ready = ::poll(set.data(), set.size(), poll_timeout(deadline));
    if (ready < 0) {
      if (errno == EINTR) continue;
      return fail_errno("cannot wait", errno);
    }
    if (set[1].revents != 0) return fail(ErrorCode::cancelled, "cancelled");
    if ((set[0].revents & POLLNVAL) != 0) return fail_errno("cannot wait", EBADF);
    if (set[0].revents != 0) return {};  // an error or a hang-up too: the caller's read or write will tell
    if (ready == 0 && deadline && std::chrono::steady_clock::now() >= *deadline) {
      return fail(ErrorCode::timed_out, "timed out");
    }
  }
}

Result<void> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd wait{fd, POLLOUT, 0};
      (void)::poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      return fail_errno("cannot write", errno);
    }
  }
  return {};
}

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer; it is refused by its type below.
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return fail_errno("cannot open " + path, errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return fail_errno("cannot open " + path, errno);
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::invalid_argument, path + " is not a regular file");
  const auto too_long = [&] {
    return fail(ErrorCode::limit, path + " is larger than " + std::to_string(limit) + " bytes");
  };
  if (info.st_size > 0 && static_cast<std::size_t>(info.st_size) > limit) return too_long();
  std::string bytes;
  bytes.reserve(static_cast<std::size_t>(std::max<off_t>(info.st_size, 0)));
  std::array<char, 16384> chunk;  // the size may be 0 (/proc) or change while reading: only end of file ends it
  for (;;) {
    const ssize_t got = ::read(fd.get(), chunk.data(), chunk.size());
    if (got == 0) return bytes;
    if (got < 0) {
      if (errno == EINTR) continue;
      return fail_errno("cannot read " + path, errno);
    }
    if (static_cast<std::size_t>(got) > limit - bytes.size()) return too_long();
    bytes.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

Result<void> write_file(const std::string& path, std::string_view bytes, unsigned mode) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, mode));
  if (!fd) return fail_errno("cannot create " + path, errno);
  if (auto written = write_all(fd.get(), bytes); !written) {
    return fail(written.error().code, path + ": " + written.error().message);
  }
  if (::close(fd.release()) != 0) return fail_errno("cannot write " + path, errno);
  return {};
}

}  // namespace base

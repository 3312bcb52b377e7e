#include "agent/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/log.h"
#include "sandbox/fs.h"

namespace agent {
namespace {

using base::ErrorCode;
using base::Fd;

std::vector<std::string> components(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (!part.empty() && part != ".") parts.emplace_back(part);
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
  return parts;
}

// Opens the folder `name` in `parent`, making it (0700) when `make`. Above the state folder (`ours` false) a link is
// followed when root or this user made it: a home behind a link is common. In ours no link is, and the folder must be
// this user's and closed to others.
base::Result<Fd> enter(const Fd& parent, const std::string& name, const std::string& path, bool ours, bool make) {
  if (name == "..") return base::fail(ErrorCode::invalid_argument, path + ": `..` is not allowed in the state folder");
  if (make && ::mkdirat(parent.get(), name.c_str(), 0700) != 0 && errno != EEXIST) {
    return base::fail_errno("cannot make " + path, errno);
  }
  struct stat info {};
  if (::fstatat(parent.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return base::fail_errno("cannot open " + path, errno);
  }
  int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
  if (S_ISLNK(info.st_mode)) {
    if (ours || (info.st_uid != 0 && info.st_uid != ::geteuid())) {
      return base::fail(ErrorCode::io, path + " is a symbolic link; session logs are not kept behind one here");
    }
    flags &= ~O_NOFOLLOW;
  }
  if (!ours) flags = (flags & ~O_RDONLY) | O_PATH;  // a folder above may be searchable but not readable
  Fd fd(::openat(parent.get(), name.c_str(), flags));
  if (!fd) return base::fail_errno("cannot open " + path, errno);
  if (!ours) return fd;
  if (::fstat(fd.get(), &info) != 0) return base::fail_errno("cannot open " + path, errno);
  if (info.st_uid != ::geteuid()) {
    return base::fail(ErrorCode::io, path + " belongs to another user; session logs are not kept there");
  }
  if ((info.st_mode & S_ISVTX) != 0) {  // such as /tmp: shared by design, not ours to close
    return base::fail(ErrorCode::io, path + " is a folder that users share; session logs are not kept there");
  }
  if ((info.st_mode & 0777) != 0700 && ::fchmod(fd.get(), 0700) != 0) {
    return base::fail_errno("cannot close " + path + " to others", errno);
  }
  return fd;
}

// The folder `path`; its last `ours` components are the product's own.
base::Result<Fd> open_folder(const std::string& path, std::size_t ours, bool make) {
  if (path.empty() || path[0] != '/') {
    return base::fail(ErrorCode::invalid_argument, "the state folder must be an absolute path: " + path);
  }
  const std::vector<std::string> parts = components(path);
  if (parts.size() < ours) return base::fail(ErrorCode::invalid_argument, "no place for session logs: " + path);
  Fd here(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!here) return base::fail_errno("cannot open /", errno);
  std::string at;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    at += "/" + parts[i];
    const bool is_ours = i + ours >= parts.size();
    auto next = enter(here, parts[i], at, is_ours, make);
    if (!next) return next;
    here = std::move(*next);
  }
  return here;
}

base::Result<void> check_file(const Fd& fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return base::fail_errno("cannot open " + path, errno);
  if (!S_ISREG(info.st_mode)) return base::fail(ErrorCode::io, path + " is not a regular file");
  if (info.st_uid != ::geteuid()) return base::fail(ErrorCode::io, path + " belongs to another user");
  if (static_cast<std::uint64_t>(info.st_size) > log_size_limit) {
    return base::fail(ErrorCode::limit, fmt::format("{} is larger than {} bytes", path, log_size_limit));
  }
  return {};
}

base::Result<std::string> read_all(const Fd& fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return base::fail_errno("cannot read " + path, errno);
  std::string bytes;
  bytes.resize(static_cast<std::size_t>(info.st_size));
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t got = ::pread(fd.get(), bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::fail_errno("cannot read " + path, errno);
    if (got == 0) break;
    at += static_cast<std::size_t>(got);
  }
  bytes.resize(at);
  return bytes;
}

std::string holder(const Fd& lock) {
  std::array<char, 32> text{};
  const ssize_t got = ::pread(lock.get(), text.data(), text.size() - 1, 0);
  std::string digits;
  for (ssize_t i = 0; i < got && text[static_cast<std::size_t>(i)] >= '0' && text[static_cast<std::size_t>(i)] <= '9';
       ++i) {
    digits += text[static_cast<std::size_t>(i)];
  }
  return digits.empty() ? "another process" : "process " + digits;
}

}  // namespace

std::string cannot_keep_sessions(const std::string& root, const std::string& why) {
  return fmt::format(
      "sessions cannot be kept in {} ({}); set XDG_STATE_HOME to the absolute path of a folder you may write", root,
      why);
}

std::string cwd_slug(const std::string& cwd) {
  std::string readable;
  for (const char c : cwd) {
    const bool safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (safe) {
      readable += c;
    } else if (!readable.empty() && readable.back() != '-') {
      readable += '-';
    }
  }
  constexpr std::size_t kept = 80;
  if (readable.size() > kept) readable = readable.substr(readable.size() - kept);
  return readable + "-" + sandbox::sha256_hex(cwd).substr(0, 8);
}

bool valid_session_id(std::string_view id) {
  if (id.empty() || id.size() > 64) return false;
  return std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

base::Result<std::string> read_log_bytes(const std::string& file) {
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!fd) return base::fail_errno("cannot open " + file, errno);
  if (auto good = check_file(fd, file); !good) return tl::unexpected<base::Error>(good.error());
  return read_all(fd, file);
}

base::Result<std::unique_ptr<LogFile>> LogFile::create(const std::string& root, const std::string& slug,
                                                       const std::string& id, LogSystem system) {
  if (!valid_session_id(id)) return base::fail(ErrorCode::invalid_argument, "not a session id: " + id);
  const std::string path = root + "/" + slug + "/" + id;
  auto folder = open_folder(path, 3, true);
  if (!folder) return tl::unexpected<base::Error>(folder.error());
  std::unique_ptr<LogFile> log(new LogFile);
  if (auto opened = log->open_in(std::move(*folder), path, true, std::move(system)); !opened) {
    return tl::unexpected<base::Error>(opened.error());
  }
  log->folder_synced_ = false;
  return log;
}

base::Result<std::unique_ptr<LogFile>> LogFile::open(const std::string& folder_path, LogSystem system) {
  auto folder = open_folder(folder_path, 3, false);
  if (!folder) return tl::unexpected<base::Error>(folder.error());
  std::unique_ptr<LogFile> log(new LogFile);
  if (auto opened = log->open_in(std::move(*folder), folder_path, false, std::move(system)); !opened) {
    return tl::unexpected<base::Error>(opened.error());
  }
  if (auto cut = log->cut_torn_tail(); !cut) return tl::unexpected<base::Error>(cut.error());
  return log;
}

base::Result<void> LogFile::open_in(Fd folder, const std::string& folder_path, bool make, LogSystem system) {
  folder_ = folder_path;
  path_ = folder_path + "/" + log_file_name;
  folder_fd_ = std::move(folder);
  system_ = std::move(system);
  if (!system_.write)
    system_.write = [](int fd, const char* bytes, std::size_t size) { return ::write(fd, bytes, size); };
  if (!system_.sync) system_.sync = [](int fd) { return ::fdatasync(fd); };

  lock_ = Fd(::openat(folder_fd_.get(), lock_file_name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!lock_) return base::fail_errno("cannot open " + folder_ + "/" + lock_file_name, errno);
  if (auto good = check_file(lock_, folder_ + "/" + lock_file_name); !good) return good;
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return base::fail_errno("cannot lock " + folder_, errno);
    return base::fail(ErrorCode::busy, fmt::format("the session is in use by {}; close it there first", holder(lock_)));
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  // Only for the message above; the lock itself is the kernel's and ends with the process.
  if (::ftruncate(lock_.get(), 0) != 0 || ::pwrite(lock_.get(), pid.data(), pid.size(), 0) < 0) {
    base::log_info("cannot note the owner in " + folder_ + "/" + lock_file_name);
  }

  const int flags = O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (make ? O_CREAT | O_EXCL : 0);
  file_ = Fd(::openat(folder_fd_.get(), log_file_name, flags, 0600));
  if (!file_) {
    if (errno == EEXIST) return base::fail(ErrorCode::already_exists, path_ + " exists");
    return base::fail_errno("cannot open " + path_, errno);
  }
  return check_file(file_, path_);
}

base::Result<std::string> LogFile::read() const { return read_all(file_, path_); }

base::Result<void> LogFile::cut_torn_tail() {
  struct stat info {};
  if (::fstat(file_.get(), &info) != 0) return base::fail_errno("cannot read " + path_, errno);
  const off_t size = info.st_size;
  // Backwards in pieces: the tail is short, the file may be long.
  std::array<char, 65536> piece;
  off_t end = size;
  while (end > 0) {
    const off_t begin = std::max<off_t>(0, end - static_cast<off_t>(piece.size()));
    const auto length = static_cast<std::size_t>(end - begin);
    ssize_t got = -1;
    do {
      got = ::pread(file_.get(), piece.data(), length, begin);
    } while (got < 0 && errno == EINTR);
    if (got != static_cast<ssize_t>(length)) return base::fail_errno("cannot read " + path_, got < 0 ? errno : EIO);
    const auto* newline = static_cast<const char*>(::memrchr(piece.data(), '\n', length));
    if (newline != nullptr) {
      end = begin + (newline - piece.data()) + 1;
      break;
    }
    end = begin;
  }
  // No newline at all: not even the header is whole. Left as it is; reading will say so.
  if (end == 0 || end == size) return {};
  if (::ftruncate(file_.get(), end) != 0) return base::fail_errno("cannot cut the torn tail of " + path_, errno);
  cut_ = static_cast<std::size_t>(size - end);
  return {};
}

base::Result<void> LogFile::broken() {
  base::Lock lock(mutex_);
  if (error_) return tl::unexpected<base::Error>(*error_);
  return {};
}

tl::unexpected<base::Error> LogFile::breaks(base::Error error) {
  base::Lock lock(mutex_);
  if (!error_) error_ = std::move(error);
  return tl::unexpected<base::Error>(*error_);
}

base::Result<void> LogFile::append(std::string_view lines) {
  if (auto good = broken(); !good) return good;
  std::string bytes;
  bytes.reserve(lines.size() + 1);
  bytes.append(lines).push_back('\n');
  std::string_view left = bytes;
  while (!left.empty()) {
    const ssize_t written = system_.write(file_.get(), left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int reason = written < 0 ? errno : EIO;
      return breaks({ErrorCode::io,
                     fmt::format("the session log cannot be written ({}); the session takes no further prompt",
                                 std::strerror(reason)),
                     path_});
    }
    left.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

base::Result<void> LogFile::sync() {
  if (auto good = broken(); !good) return good;
  int failed = system_.sync(file_.get()) != 0 ? errno : 0;
  // The name of a new file is part of what must survive.
  if (failed == 0 && !folder_synced_.exchange(true) && ::fsync(folder_fd_.get()) != 0) failed = errno;
  if (failed == 0) return {};
  return breaks({ErrorCode::io,
                 fmt::format("the session log cannot be brought to disk ({}); the session takes no further prompt",
                             std::strerror(failed)),
                 path_});
}

}  // namespace agent

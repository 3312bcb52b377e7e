#include "sandbox/fs_posix.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace sandbox {
namespace {

namespace stdfs = std::filesystem;

constexpr int most_links = 40;  // as the kernel

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// /proc/<pid> of this process, by its own id or that of one of its threads.
bool own_process_path(const std::string& canonical) {
  if (!canonical.starts_with("/proc/")) return false;
  const std::string entry = canonical.substr(6, canonical.find('/', 6) - 6);
  if (!all_digits(entry)) return false;
  return access(("/proc/self/task/" + entry).c_str(), F_OK) == 0;
}

// open() or fstat() errors in words that name the path; ELOOP and ENOTDIR on a canonical path are a swap.
tl::unexpected<base::Error> swapped(const std::string& path) {
  return base::fail(base::ErrorCode::busy, path + " changed while it was being opened");
}

int try_openat2(int folder, const char* relative) {
  open_how how{};
  how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS;
  return static_cast<int>(syscall(SYS_openat2, folder, relative, &how, sizeof how));
}

bool openat2_missing(int number) { return number == ENOSYS || number == EPERM || number == E2BIG || number == EAGAIN; }

// One component at a time, no links, missing ones made when `make`: what openat2 does, for kernels without it, and for
// folders that are not there yet.
base::Result<base::Fd> walk(base::Fd from, const std::string& relative, bool make, const std::string& whole) {
  for (const auto& part : stdfs::path(relative)) {
    const std::string name = part.string();
    if (name.empty() || name == ".") continue;
    if (name == "..") return base::fail(base::ErrorCode::invalid_argument, whole + " is not a canonical path");
    const auto open_it = [&] {
      return openat(from.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    };
    base::Fd next(open_it());
    if (!next && errno == ENOENT && make) {
      if (mkdirat(from.get(), name.c_str(), 0777) != 0 && errno != EEXIST)
        return base::fail_errno("cannot make folder " + whole, errno);
      next = base::Fd(open_it());
    }
    if (!next) {
      if (errno == ELOOP || errno == ENOTDIR) return swapped(whole);
      return base::fail_errno("cannot open folder " + whole, errno);
    }
    from = std::move(next);
  }
  return from;
}

base::Result<base::Fd> open_below(base::Fd from, const std::string& relative, bool make, const std::string& whole) {
  if (relative.empty()) return from;
  const int fd = try_openat2(from.get(), relative.c_str());
  if (fd >= 0) return base::Fd(fd);
  if (errno == ELOOP || errno == EXDEV) return swapped(whole);
  if (errno == ENOENT && !make) return base::fail_errno("cannot open folder " + whole, errno);
  if (errno != ENOENT && errno != ENOTDIR && !openat2_missing(errno))
    return base::fail_errno("cannot open folder " + whole, errno);
  return walk(std::move(from), relative, make, whole);
}

}  // namespace

std::string_view kind_of_mode(unsigned mode) {
  if (S_ISREG(mode)) return "a regular file";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISLNK(mode)) return "a symbolic link";
  return "a device";
}

base::Result<std::string> write_target(const std::string& absolute_path) {
  std::string path = absolute_path;
  if (path.find('\0') != std::string::npos)
    return base::fail(base::ErrorCode::invalid_argument, "the path contains a NUL byte");
  for (int links = 0; links < most_links; ++links) {
    auto target = canonical_target(path);
    if (target) return target;
    // What is created through a link that points to nothing is what it points to.
    std::error_code error;
    const stdfs::path link = stdfs::read_symlink(path, error);
    if (error) return target;
    path = (stdfs::path(path).parent_path() / link).string();
  }
  return base::fail(base::ErrorCode::invalid_argument, absolute_path + ": too many levels of symbolic links");
}

base::Result<FileContent> read_regular(const std::string& path) {
  if (path.find('\0') != std::string::npos)
    return base::fail(base::ErrorCode::invalid_argument, "the path contains a NUL byte");
  auto real = canonical_path(path);
  if (!real) return tl::unexpected(real.error());
  if (own_process_path(*real))
    return base::fail(base::ErrorCode::fs_permission_denied,
                      *real + " belongs to the agent itself and is not readable");
  struct stat status {};
  if (stat(real->c_str(), &status) != 0) return base::fail_errno("cannot read " + *real, errno);
  const auto irregular = [&] {
    return base::fail(base::ErrorCode::invalid_argument,
                      *real + " is " + std::string(kind_of_mode(status.st_mode)) + ", not a regular file");
  };
  if (!S_ISREG(status.st_mode)) return irregular();
  const base::Fd file(open(real->c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file) return base::fail_errno("cannot read " + *real, errno);
  if (fstat(file.get(), &status) != 0) return base::fail_errno("cannot read " + *real, errno);
  if (!S_ISREG(status.st_mode)) return irregular();

  FileContent content;
  content.canonical_path = *real;
  const auto too_large = [&] {
    return base::fail(base::ErrorCode::limit,
                      *real + " is larger than 32 MiB; read parts of it with bash (head, tail, sed -n, grep)");
  };
  if (static_cast<std::uint64_t>(status.st_size) > fs_read_limit) return too_large();
  content.bytes.reserve(static_cast<std::size_t>(status.st_size));
  std::string buffer(64 * 1024, '\0');
  for (;;) {
    const ssize_t n = read(file.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::fail_errno("cannot read " + *real, errno);
    if (n == 0) break;
    content.bytes.append(buffer, 0, static_cast<std::size_t>(n));
    if (content.bytes.size() > fs_read_limit) return too_large();
  }
  content.hash = sha256_hex(content.bytes);
  return content;
}

base::Result<base::Fd> open_folder(const std::string& root, const std::string& relative) {
  base::Fd top(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!top) return base::fail_errno("cannot open /", errno);
  auto at_root =
      open_below(std::move(top), root.substr(std::min(root.find_first_not_of('/'), root.size())), false, root);
  if (!at_root) return at_root;
  return open_below(std::move(*at_root), relative, true, (stdfs::path(root) / relative).string());
}

}  // namespace sandbox

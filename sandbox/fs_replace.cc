#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>

#include "sandbox/fs_posix.h"

namespace sandbox {
namespace {

tl::unexpected<base::Error> cannot_write(const std::string& path, int number) {
  return base::fail_errno("cannot write " + path, number);
}

tl::unexpected<base::Error> stale(const std::string& path, const std::string& how) {
  return base::fail(base::ErrorCode::fs_stale_version, path + " " + how + " since it was read; read it again");
}

std::string temporary_name() {
  std::uint64_t bits = 0;
  if (getrandom(&bits, sizeof bits, 0) != sizeof bits) bits = static_cast<std::uint64_t>(getpid());
  return ".acp-agent-" + std::to_string(bits) + ".tmp";
}

// What is at `name` now; absent = nothing.
base::Result<std::optional<std::string>> hash_now(int folder, const std::string& name, const std::string& canonical) {
  const base::Fd file(openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file) {
    if (errno == ENOENT) return std::nullopt;
    if (errno == ELOOP) return base::fail(base::ErrorCode::busy, canonical + " changed while it was being written");
    return cannot_write(canonical, errno);
  }
  std::string bytes, buffer(64 * 1024, '\0');
  for (;;) {
    const ssize_t n = read(file.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return cannot_write(canonical, errno);
    if (n == 0) break;
    bytes.append(buffer, 0, static_cast<std::size_t>(n));
    if (bytes.size() > fs_read_limit) return stale(canonical, "grew");
  }
  return sha256_hex(bytes);
}

// The last look before the change.
base::Result<std::string> check_expected(int folder, const std::string& name, const std::string& canonical,
                                         const WriteRequest& request) {
  auto now = hash_now(folder, name, canonical);
  if (!now) return tl::unexpected(now.error());
  if (!request.expected_hash) {
    if (*now)
      return base::fail(base::ErrorCode::fs_stale_version, canonical + " exists by now; read it before changing it");
    return std::string();
  }
  if (!*now) return stale(canonical, "was deleted");
  if (**now != *request.expected_hash) return stale(canonical, "was changed");
  return **now;
}

// ACLs and user attributes. Best effort: a file system without them has nothing to lose, and capabilities must not
// survive a change of content.
void copy_attributes(int from, int to) {
  std::string names(64 * 1024, '\0');  // the kernel's own limit of a list
  const ssize_t size = flistxattr(from, names.data(), names.size());
  if (size <= 0) return;
  names.resize(static_cast<std::size_t>(size));
  std::string value(64 * 1024, '\0');
  for (std::size_t at = 0; at < names.size();) {
    const std::string name(names.c_str() + at);
    at += name.size() + 1;
    if (!name.starts_with("user.") && name != "system.posix_acl_access") continue;
    const ssize_t length = fgetxattr(from, name.c_str(), value.data(), value.size());
    if (length >= 0) (void)fsetxattr(to, name.c_str(), value.data(), static_cast<std::size_t>(length), 0);
  }
}

// False when the owner cannot be kept.
base::Result<bool> take_over(int folder, const std::string& name, const struct stat& old, int to,
                             const std::string& canonical) {
  struct stat made {};
  if (fstat(to, &made) != 0) return cannot_write(canonical, errno);
  if ((made.st_uid != old.st_uid || made.st_gid != old.st_gid) && fchown(to, old.st_uid, old.st_gid) != 0) return false;
  if (fchmod(to, old.st_mode & 07777) != 0) return cannot_write(canonical, errno);
  const base::Fd from(openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (from) copy_attributes(from.get(), to);
  return true;
}

base::Result<WriteResult> write_in_place(int folder, const std::string& name, const std::string& canonical,
                                         const WriteRequest& request, bool many_names) {
  auto old_hash = check_expected(folder, name, canonical, request);
  if (!old_hash) return tl::unexpected(old_hash.error());
  const base::Fd file(openat(folder, name.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file) return cannot_write(canonical, errno);
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return cannot_write(canonical, EINVAL);
  if (status.st_nlink > 1 && !many_names)
    return base::fail(base::ErrorCode::fs_permission_denied,
                      "cannot write " + canonical + ": the file has other names (hard links) and cannot be replaced");
  if (auto written = base::write_all(file.get(), request.bytes); !written) return tl::unexpected(written.error());
  if (ftruncate(file.get(), static_cast<off_t>(request.bytes.size())) != 0) return cannot_write(canonical, errno);
  return WriteResult{canonical, *old_hash, sha256_hex(request.bytes)};
}

int rename_new(int folder, const std::string& from, const std::string& to) {
  if (renameat2(folder, from.c_str(), folder, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return -1;
  if (linkat(folder, from.c_str(), folder, to.c_str(), 0) != 0) return -1;  // a file system without that flag
  return unlinkat(folder, from.c_str(), 0);
}

bool folder_refuses(int number) {
  return number == EACCES || number == EPERM || number == EROFS || number == EBUSY || number == EXDEV;
}

}  // namespace

base::Result<WriteResult> replace_in(const base::Fd& folder_fd, const std::string& name, const std::string& canonical,
                                     const WriteRequest& request, bool many_names) {
  const int folder = folder_fd.get();
  if (name.empty() || name == "." || name == "..")
    return base::fail(base::ErrorCode::invalid_argument, canonical + " is a folder");
  struct stat old {};
  const bool exists = fstatat(folder, name.c_str(), &old, AT_SYMLINK_NOFOLLOW) == 0;
  if (!exists && errno != ENOENT) return cannot_write(canonical, errno);
  if (exists && S_ISLNK(old.st_mode))
    return base::fail(base::ErrorCode::busy, canonical + " changed while it was being written");
  if (exists && !S_ISREG(old.st_mode))
    return base::fail(base::ErrorCode::invalid_argument,
                      canonical + " is " + std::string(kind_of_mode(old.st_mode)) + ", not a regular file");

  const auto in_place = [&](int number) -> base::Result<WriteResult> {
    if (!exists) return cannot_write(canonical, number);
    return write_in_place(folder, name, canonical, request, many_names);
  };

  // A new file gets its mode from the umask and the folder's default ACL.
  const std::string temporary = temporary_name();
  base::Fd file(
      openat(folder, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, exists ? 0600 : 0666));
  if (!file) return folder_refuses(errno) ? in_place(errno) : cannot_write(canonical, errno);
  const auto give_up = [&](auto result) -> base::Result<WriteResult> {
    unlinkat(folder, temporary.c_str(), 0);
    return result;
  };
  if (auto written = base::write_all(file.get(), request.bytes); !written)
    return give_up(base::fail(written.error().code, "cannot write " + canonical + ": " + written.error().message));
  if (exists) {
    const auto kept = take_over(folder, name, old, file.get(), canonical);
    if (!kept) return give_up(tl::unexpected(kept.error()));
    if (!*kept) {
      unlinkat(folder, temporary.c_str(), 0);
      return in_place(EPERM);
    }
  }
  if (fdatasync(file.get()) != 0 && errno != EINVAL) return give_up(cannot_write(canonical, errno));
  auto old_hash = check_expected(folder, name, canonical, request);
  if (!old_hash) return give_up(tl::unexpected(old_hash.error()));
  const int renamed = request.expected_hash ? renameat(folder, temporary.c_str(), folder, name.c_str())
                                            : rename_new(folder, temporary, name);
  if (renamed != 0) {
    const int number = errno;
    if (number == EEXIST)
      return give_up(
          base::fail(base::ErrorCode::fs_stale_version, canonical + " exists by now; read it before changing it"));
    unlinkat(folder, temporary.c_str(), 0);
    return folder_refuses(number) ? in_place(number) : base::Result<WriteResult>(cannot_write(canonical, number));
  }
  return WriteResult{canonical, *old_hash, sha256_hex(request.bytes)};
}

}  // namespace sandbox

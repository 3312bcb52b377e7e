#define _GNU_SOURCE
#include "supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <utime.h>

#include "connect.h"
#include "filter.h"
#include "task.h"

enum {
  go_on = -1,                   /* no error number; connect.h has the other */
  ioctl_set_flags = 0x40082104, /* SECCOMP_IOCTL_NOTIF_SET_FLAGS, 6.6 */
  sync_wake_up = 1,
  ioctl_ext4_set_version = 0x40086604, /* fs/ext4/ioctl.h: _IOW('f', 4, long) */
  max_value = 65536,                   /* XATTR_SIZE_MAX */
  max_name = 256,                      /* XATTR_NAME_MAX and its end */
  most_links = 40,
  path_room = 2 * PATH_MAX
};

static const char* const change_names[] = {
    [change_open] = "write",  [change_make] = "create",    [change_remove] = "remove",     [change_rename] = "rename",
    [change_link] = "link",   [change_truncate] = "cut",   [change_mode] = "chmod",        [change_owner] = "chown",
    [change_times] = "touch", [change_xattr] = "setfattr", [change_no_xattr] = "setfattr", [change_flags] = "chattr"};

/* -- policy -------------------------------------------------------------------------------------------------------- */

static bool within(const char* path, const char* root) {
  const size_t length = strlen(root);
  return strncmp(path, root, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

bool within_any(const char* path, const struct path_list* list) {
  for (int i = 0; i < list->count; ++i) {
    if (within(path, list->items[i])) return true;
  }
  return false;
}

/* Strictly: the path itself is not enough. */
static bool below_any(const char* path, const struct path_list* list) {
  for (int i = 0; i < list->count; ++i) {
    if (within(path, list->items[i]) && strcmp(path, list->items[i]) != 0) return true;
  }
  return false;
}
static bool above_any(const char* path, const struct path_list* list) {
  for (int i = 0; i < list->count; ++i) {
    if (within(list->items[i], path) && strcmp(path, list->items[i]) != 0) return true;
  }
  return false;
}

/* Whether this name must not be made. `moved`: what gets it may be a folder with something in it, or lead to one. */
static bool forbidden(const struct supervisor* self, const char* path, bool moved) {
  if (within_any(path, &self->absent)) return !below_any(path, &self->open);
  return moved && above_any(path, &self->absent);
}

/* A writable folder itself has its name in one that need not be. */
static bool at_the_top(const struct supervisor* self, const char* path) {
  for (int i = 0; i < self->roots.count; ++i) {
    if (strcmp(path, self->roots.items[i]) == 0) return !below_any(path, &self->roots);
  }
  return false;
}

static bool writable(const struct supervisor* self, const char* path) {
  return within_any(path, &self->roots) && !within_any(path, &self->kept) && !forbidden(self, path, false);
}

static void tell(const struct supervisor* self, const char* what, const char* path) {
  const bool own = within(path, "/proc") && !within(path, "/proc/sys"); /* whose it is cannot be told */
  if (!own && !within_any(path, &self->quiet)) self->denied(what, path);
}

/* -- observing ----------------------------------------------------------------------------------------------------- */

enum place {
  nowhere, /* no such folder, or something that is open already */
  told,
  untold /* it leads through what only the process itself can follow */
};

static int open_folder(int base, const char* path) {
  const struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};
  return (int)syscall(nr_openat2, base, path, &how, sizeof how);
}

/* Where relative paths of the process start; AT_FDCWD (ours; only absolute ones are looked up then) or -1. */
static int open_base(const struct task* task, int at, const char* path) {
  char name[32];
  if (*path == '/') return AT_FDCWD;
  snprintf(name, sizeof name, at == AT_FDCWD ? "cwd" : "fd/%d", at);
  return openat(task->dir, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* The last name of `text`, cut off: what is left is its folder. */
static const char* cut_last(char* text) {
  size_t end = strlen(text);
  while (end > 1 && text[end - 1] == '/') text[--end] = '\0';
  char* slash = strrchr(text, '/');
  const char* last = slash ? slash + 1 : text;
  if (!*last || strcmp(last, ".") == 0 || strcmp(last, "..") == 0) return "";
  if (!slash) return last;
  if (slash == text) {
    memmove(text + 2, last, strlen(last) + 1); /* there is room: a path is shorter than the text */
    text[1] = '\0';
    return text + 2;
  }
  *slash = '\0';
  return last;
}

/* The place a path of the process means: the canonical path of its folder with the last name behind it, in `out`;
 * *exists: whether there is something. Where that is a link, and it is followed, what it leads to. */
static enum place locate(const struct task* task, int at, const char* path, bool follow, char* out, size_t room,
                         bool* exists) {
  char text[path_room], target[PATH_MAX];
  path = own_way(path, &at);
  if (!*path) return nowhere;
  if (!read_link(task->dir, "root", target, sizeof target) || strcmp(target, "/") != 0) return untold;
  int base = open_base(task, at, path);
  if (base == -1) return nowhere;
  enum place place = nowhere;
  snprintf(text, sizeof text, "%s", path);
  for (int links = 0; links < most_links; ++links) {
    char folder[PATH_MAX];
    struct stat info;
    const char* last = cut_last(text);
    const int fd = open_folder(base, last == text ? "." : text);
    if (base >= 0) close(base);
    base = fd;
    if (fd < 0) {
      if (errno == ELOOP) place = untold;
      break;
    }
    if (!path_of(fd, folder, sizeof folder)) {
      if (errno != ENAMETOOLONG) place = untold; /* nothing protected lies as deep */
      break;
    }
    const bool link = *last && follow && read_link(fd, last, target, sizeof target);
    if (!link) {
      const bool top = strcmp(folder, "/") == 0;
      *exists = !*last || fstatat(fd, last, &info, AT_SYMLINK_NOFOLLOW) == 0;
      const int n = snprintf(out, room, "%s%s%s", *last && top ? "" : folder, *last ? "/" : "", last);
      place = n > 0 && (size_t)n < room ? told : untold;
      break;
    }
    int own = base;
    snprintf(text, sizeof text, "%s", own_way(target, &own));
    if (!*text) break;
    if (own != base || *text == '/') {
      close(base);
      base = open_base(task, own, text);
      if (base == -1) break;
    }
  }
  if (base >= 0) close(base);
  return place;
}

static bool user_could_write(const char* path) { return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0; }

static bool user_could_change_folder_of(const char* path) {
  char folder[path_room];
  snprintf(folder, sizeof folder, "%s", path);
  char* slash = strrchr(folder, '/');
  if (!slash) return false;
  slash[slash == folder ? 1 : 0] = '\0';
  return faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0;
}

static bool user_could_change_inode(const char* path) {
  struct stat info;
  return lstat(path, &info) == 0 && (geteuid() == 0 || info.st_uid == geteuid());
}

static bool follows(const struct changing_call* call, const struct seccomp_data* data) {
#if defined(__x86_64__)
  if (call->number == SYS_lchown) return false;
#endif
  if (call->number == SYS_lsetxattr || call->number == SYS_lremovexattr) return false;
  return call->flags < 0 || !(data->args[call->flags] & AT_SYMLINK_NOFOLLOW);
}

/* utimensat() without a path is about the descriptor; any other call without one that has one is wrong. */
static bool about_descriptor(const struct changing_call* call, const struct seccomp_data* data) {
  return call->path < 0 || (call->number == SYS_utimensat && data->args[call->path] == 0);
}

static bool makes_link(int number) {
#if defined(__x86_64__)
  if (number == SYS_symlink) return true;
#endif
  return number == SYS_symlinkat;
}

static bool removes_folder(const struct changing_call* call, const struct seccomp_data* data) {
#if defined(__x86_64__)
  if (call->number == SYS_rmdir) return true;
#endif
  return call->number == SYS_unlinkat && (data->args[2] & AT_REMOVEDIR);
}

static bool is_folder(const char* path) {
  struct stat info;
  return lstat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool has_entries(const char* folder) {
  DIR* dir = opendir(folder);
  int count = 0;
  while (dir && count < 3 && readdir(dir)) ++count; /* two are there always */
  if (dir) closedir(dir);
  return count > 2;
}

/* The path a socket is bound to, in place of a string. */
static bool read_socket_name(const struct task* task, const struct seccomp_data* data, char* path) {
  struct sockaddr_un address;
  const uint32_t length = (uint32_t)data->args[2];
  const size_t start = offsetof(struct sockaddr_un, sun_path);
  memset(&address, 0, sizeof address);
  if (length <= start || length > sizeof address || !read_memory(task, data->args[1], &address, length)) return false;
  if (address.sun_family != AF_UNIX || !address.sun_path[0]) return false;
  memcpy(path, address.sun_path, length - start);
  path[length - start] = '\0';
  return true;
}

static bool replaces(const char* from, const char* to, bool exists, unsigned flags) {
  if (!exists || (flags & RENAME_EXCHANGE)) return true;
  if (flags & RENAME_NOREPLACE) return false;
  return is_folder(from) == is_folder(to) && !(is_folder(to) && has_entries(to));
}

/* Two names, the second new. */
static bool observe_pair(const struct supervisor* self, const struct task* task, const struct changing_call* call,
                         const struct seccomp_data* data, const char* path) {
  char to_path[PATH_MAX], from[path_room], to[path_room];
  bool from_exists = false, to_exists = false;
  const bool renames = call->change == change_rename;
  const unsigned flags = call->number == SYS_renameat2 ? (unsigned)data->args[4] : 0;
  if (read_string(task, data->args[call->path2], to_path, sizeof to_path) != 0) return false;
  const enum place new_place =
      locate(task, call->at2 < 0 ? AT_FDCWD : (int)data->args[call->at2], to_path, false, to, sizeof to, &to_exists);
  const enum place old_place = !*path ? nowhere
                                      : locate(task, call->at < 0 ? AT_FDCWD : (int)data->args[call->at], path, false,
                                               from, sizeof from, &from_exists);
  const bool exchange = renames && (flags & RENAME_EXCHANGE);
  bool refused = new_place == untold || (new_place == told && forbidden(self, to, renames));
  if (exchange) refused = refused || old_place == untold || (old_place == told && forbidden(self, from, true));
  refused = refused && self->absent.count > 0;
  if (old_place != told || new_place != told || !from_exists) return refused;
  if (renames ? !replaces(from, to, to_exists, flags) : to_exists) return refused;
  const bool could =
      user_could_change_folder_of(to) && (renames ? user_could_change_folder_of(from) : user_could_change_inode(from));
  if (!could) return refused;
  if (!writable(self, from) || at_the_top(self, from) || (renames && above_any(from, &self->kept))) {
    tell(self, change_names[call->change], from);
  } else if (refused || !writable(self, to) || above_any(to, &self->kept)) {
    tell(self, change_names[call->change], to);
  }
  return refused;
}

/* Whether the call must not go on: it would make a protected name. */
static bool observe(const struct supervisor* self, const struct task* task, const struct changing_call* call,
                    const struct seccomp_data* data) {
  char path[PATH_MAX], place[path_room];
  bool exists = false, could = false, makes = call->change == change_make, links = false;
  const char* what = change_names[call->change];
  const int at = call->at < 0 ? AT_FDCWD : (int)data->args[call->at];
  if (call->number == SYS_bind) {
    if (!read_socket_name(task, data, path)) return false;
  } else if (read_string(task, data->args[call->path], path, sizeof path) != 0) {
    return false;
  }
  if (call->change == change_rename || call->change == change_link) return observe_pair(self, task, call, data, path);
  if (!*path) return false;

  uint64_t flags = 0;
  bool elsewhere = false;
  bool follow = call->change == change_open || call->change == change_truncate;
  if (call->change == change_open) {
    if (call->number == nr_openat2) {
      struct open_how how;
      if (!read_memory(task, data->args[call->flags], &how, sizeof how)) return false;
      flags = how.flags;
      elsewhere = how.resolve & RESOLVE_IN_ROOT;
    } else {
      flags = call->flags < 0 ? O_WRONLY | O_CREAT | O_TRUNC : data->args[call->flags];
    }
    if (flags & O_PATH) return false;
    if ((flags & O_NOFOLLOW) || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL)) follow = false;
    makes = flags & O_CREAT;
  }
  const enum place found = elsewhere ? untold : locate(task, at, path, follow, place, sizeof place, &exists);
  if (found != told) return found == untold && makes && self->absent.count > 0;

  struct stat info;
  switch (call->change) {
    case change_open:
      if (!exists) {
        what = "create";
        could = makes && user_could_change_folder_of(place);
      } else if (lstat(place, &info) != 0 || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL)) {
        return false;
      } else if (S_ISDIR(info.st_mode)) {
        could = (flags & O_TMPFILE) == O_TMPFILE && user_could_write(place);
      } else {
        could = ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC)) && user_could_write(place);
      }
      break;
    case change_make:
      links = makes_link(call->number);
      could = !exists && user_could_change_folder_of(place);
      break;
    case change_remove: {
      const bool folder = removes_folder(call, data);
      could =
          exists && folder == is_folder(place) && !(folder && has_entries(place)) && user_could_change_folder_of(place);
      if (could && at_the_top(self, place)) tell(self, what, place);
      break;
    }
    case change_truncate:
      could = exists && user_could_write(place);
      break;
    case change_rename:
    case change_link:
    case change_mode:
    case change_owner:
    case change_times:
    case change_xattr:
    case change_no_xattr:
    case change_flags:
      return false; /* seen to above, and by enforce() */
  }
  const bool refused = makes && !exists && forbidden(self, place, links);
  if (could && (refused || !writable(self, place))) tell(self, what, place);
  return refused;
}

/* -- enforcing ----------------------------------------------------------------------------------------------------- */

static bool device_of(int base, const char* path, dev_t* out) {
  const struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS};
  struct stat info;
  const int fd = (int)syscall(nr_openat2, base, path, &how, sizeof how);
  const bool good = fd >= 0 && fstat(fd, &info) == 0;
  if (fd >= 0) close(fd);
  if (good) *out = info.st_dev;
  return good;
}

/* A file system that the runner made for this call alone, known by its number: not the one the host has there. */
static bool of_the_call(const struct supervisor* self, const struct task* task, dev_t device) {
  if (self->own.count == 0) return false;
  const int root = openat(task->dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return false;
  bool found = false;
  for (int i = 0; i < self->own.count && !found; ++i) {
    dev_t inside = 0;
    struct stat host;
    found = device_of(root, self->own.items[i], &inside) && inside == device &&
            (stat(self->own.items[i], &host) != 0 || host.st_dev != device);
  }
  close(root);
  return found;
}

/* Whether a change of this inode stays inside. A pipe, a socket and a nameless memory file are nobody's file. */
static bool inside(const struct supervisor* self, const struct task* task, int fd, char* path, size_t room) {
  struct stat info;
  struct statfs system;
  if (!path_of(fd, path, room) || fstat(fd, &info) != 0) return false;
  if (*path != '/') return S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode);
  if (strncmp(path, "/memfd:", 7) == 0)
    return info.st_nlink == 0 && fstatfs(fd, &system) == 0 && system.f_type == TMPFS_MAGIC;
  return writable(self, path) || of_the_call(self, task, info.st_dev);
}

static bool read_times(const struct task* task, const struct changing_call* call, const struct seccomp_data* data,
                       struct timespec* times, bool* now) {
  const int index = (call->path < 0 ? call->at : call->path) + 1;
  const uint64_t address = data->args[index];
  *now = address == 0;
  if (*now) return true;
#if defined(__x86_64__)
  if (call->number == SYS_utime) {
    struct utimbuf old;
    if (!read_memory(task, address, &old, sizeof old)) return false;
    times[0] = (struct timespec){old.actime, 0};
    times[1] = (struct timespec){old.modtime, 0};
    return true;
  }
#endif
  if (!read_memory(task, address, times, 2 * sizeof *times)) return false;
  if (call->number == SYS_utimensat) return true;
  for (int i = 0; i < 2; ++i) { /* microseconds; what is out of range there must be out of range here */
    if (times[i].tv_nsec < 0 || times[i].tv_nsec >= 1000000)
      times[i].tv_nsec = 2000000000;
    else
      times[i].tv_nsec *= 1000;
  }
  return true;
}

static bool allowed_attribute(const char* name) {
  return strncmp(name, "user.", 5) == 0 || strcmp(name, "system.posix_acl_access") == 0 ||
         strcmp(name, "system.posix_acl_default") == 0;
}

/* Inode flags and the generation of a file or folder. What needs a privilege that no command is left (immutable,
 * append-only, journalled data, another project) is not done with ours; every other ioctl of file systems is refused.
 */
static int set_flags(const struct task* task, const struct seccomp_data* data, const char* link) {
  const uint32_t number = (uint32_t)data->args[1];
  struct stat info;
  if (stat(link, &info) != 0) return errno;
  if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return ENOTTY;
  const int fd = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return errno;
  int error = EPERM;
  if (number == FS_IOC_FSSETXATTR) {
    struct fsxattr wanted, now;
    const uint32_t privileged = FS_XFLAG_IMMUTABLE | FS_XFLAG_APPEND;
    if (!read_memory(task, data->args[2], &wanted, sizeof wanted)) {
      error = EFAULT;
    } else if (ioctl(fd, FS_IOC_FSGETXATTR, &now) != 0) {
      error = errno;
    } else if (!((wanted.fsx_xflags ^ now.fsx_xflags) & privileged) && wanted.fsx_projid == now.fsx_projid) {
      error = ioctl(fd, FS_IOC_FSSETXATTR, &wanted) == 0 ? 0 : errno;
    }
  } else if (number == FS_IOC_SETFLAGS || number == FS_IOC32_SETFLAGS) {
    int wanted = 0, now = 0;
    const int privileged = FS_IMMUTABLE_FL | FS_APPEND_FL | FS_JOURNAL_DATA_FL;
    if (!read_memory(task, data->args[2], &wanted, sizeof wanted)) {
      error = EFAULT;
    } else if (ioctl(fd, FS_IOC_GETFLAGS, &now) != 0) {
      error = errno;
    } else if (!((wanted ^ now) & privileged)) {
      error = ioctl(fd, FS_IOC_SETFLAGS, &wanted) == 0 ? 0 : errno;
    }
  } else if (number == FS_IOC_SETVERSION || number == FS_IOC32_SETVERSION || number == ioctl_ext4_set_version) {
    int wanted = 0;
    if (!read_memory(task, data->args[2], &wanted, sizeof wanted)) {
      error = EFAULT;
    } else {
      error = ioctl(fd, FS_IOC_SETVERSION, &wanted) == 0 ? 0 : errno;
    }
  }
  close(fd);
  return error;
}

/* The change itself; 0 or an error number. */
static int perform(const struct task* task, const struct changing_call* call, const struct seccomp_data* data, int fd) {
  static char value[max_value];
  char link[40], name[max_name];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const int after = (call->path < 0 ? call->at : call->path) + 1;
  long rc = -1;
  switch (call->change) {
    case change_mode:
      rc = chmod(link, (mode_t)data->args[after]);
      break;
    case change_owner:
      rc = fchownat(fd, "", (uid_t)data->args[after], (gid_t)data->args[after + 1], AT_EMPTY_PATH);
      break;
    case change_times: {
      struct timespec times[2];
      bool now = false;
      if (!read_times(task, call, data, times, &now)) return EFAULT;
      rc = syscall(SYS_utimensat, fd, "", now ? NULL : times, AT_EMPTY_PATH);
      if (rc != 0 && errno == EINVAL) rc = syscall(SYS_utimensat, AT_FDCWD, link, now ? NULL : times, 0); /* < 5.8 */
      break;
    }
    case change_xattr: {
      const uint64_t size = data->args[after + 2];
      const int error = read_string(task, data->args[after], name, sizeof name);
      if (error) return error == ENAMETOOLONG ? ERANGE : error;
      if (!allowed_attribute(name)) return EPERM;
      if (size > max_value) return E2BIG;
      if (size && !read_memory(task, data->args[after + 1], value, (size_t)size)) return EFAULT;
      rc = syscall(SYS_setxattr, link, name, value, (size_t)size, (int)data->args[after + 3]);
      break;
    }
    case change_no_xattr: {
      const int error = read_string(task, data->args[after], name, sizeof name);
      if (error) return error == ENAMETOOLONG ? ERANGE : error;
      if (!allowed_attribute(name)) return EPERM;
      rc = syscall(SYS_removexattr, link, name);
      break;
    }
    case change_flags:
      return set_flags(task, data, link);
    case change_open:
    case change_make:
    case change_remove:
    case change_rename:
    case change_link:
    case change_truncate:
      return EPERM;
  }
  return rc == 0 ? 0 : errno;
}

/* 0, or the error number that the process gets. */
static int enforce(const struct supervisor* self, const struct task* task, const struct changing_call* call,
                   const struct seccomp_data* data) {
  char path[PATH_MAX], place[path_room];
  const char* named = NULL;
  const int at = call->at < 0 ? AT_FDCWD : (int)data->args[call->at];
  const uint64_t known_flags = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH;
  if (about_descriptor(call, data)) {
    if (!usable_descriptor(task, at)) return EBADF;
  } else {
    if (call->flags >= 0 && (data->args[call->flags] & 0xffffffff & ~known_flags)) return EINVAL;
    const int error = read_string(task, data->args[call->path], path, sizeof path);
    if (error) return error;
    const bool empty_is_at = call->flags >= 0 && (data->args[call->flags] & AT_EMPTY_PATH);
    if (!*path && !empty_is_at) return ENOENT;
    named = path;
  }
  int error = EACCES;
  if (take_ids(task)) {
    const int fd = resolve(task, at, named, follows(call, data));
    if (fd < 0) {
      error = errno;
    } else if (!inside(self, task, fd, place, sizeof place)) {
      if (*place == '/' && !within(place, "/proc") && user_could_change_inode(place))
        tell(self, change_names[call->change], place);
    } else {
      error = perform(task, call, data, fd);
    }
    if (fd >= 0) close(fd);
  }
  take_own_ids();
  return error;
}

/* -- the listener -------------------------------------------------------------------------------------------------- */

static void take_listener(struct supervisor* self) {
  char byte;
  union {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
  } control;
  struct iovec data = {&byte, 1};
  struct msghdr message = {
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  if (recvmsg(self->socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) > 0) {
    const struct cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int)))
      memcpy(&self->listener, CMSG_DATA(header), sizeof(int));
  }
  close(self->socket); /* the launcher sends once; nobody else is listened to */
  self->socket = -1;
  if (self->listener < 0) return;
  /* The caller and we take turns on one processor: half the time. Older kernels do not know it. */
  ioctl(self->listener, ioctl_set_flags, sync_wake_up);
  self->listening();
}

static bool makes_names(enum change change) {
  return change == change_open || change == change_make || change == change_rename || change == change_link;
}

static const struct changing_call* find_call(int number) {
  for (size_t i = 0; i < changing_call_count; ++i) {
    if (changing_calls[i].number == number) return &changing_calls[i];
  }
  return NULL;
}

/* What to answer to one call: an error number, 0 for "it was done", go_on, or answered_elsewhere. */
static int answer_to(const struct supervisor* self, const struct seccomp_notif* asked) {
  const struct changing_call* call = find_call(asked->data.nr);
  const bool enforced = !call || is_metadata(call->change);
  const bool guarded = self->absent.count > 0 && call && makes_names(call->change);
  char name[16];
  struct task task = {-1, -1};
  int result = enforced || guarded ? EACCES : go_on;
  snprintf(name, sizeof name, "%u", asked->pid);
  if (self->proc) task.dir = openat(dirfd(self->proc), name, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (task.dir >= 0) task.mem = openat(task.dir, "mem", O_RDONLY | O_CLOEXEC);
  /* From here on both stay with the process that was there when the kernel said so. */
  if (task.mem >= 0 && ioctl(self->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &asked->id) == 0) {
    if (asked->data.nr == SYS_connect) {
      result = connect_for(self, &task, asked);
    } else if (enforced) {
      result = enforce(self, &task, call, &asked->data);
    } else {
      result = observe(self, &task, call, &asked->data) ? EACCES : go_on;
    }
  }
  if (task.mem >= 0) close(task.mem);
  if (task.dir >= 0) close(task.dir);
  return result;
}

int supervise_fd(const struct supervisor* self) { return self->listener >= 0 ? self->listener : self->socket; }

void supervise(struct supervisor* self, short events) {
  if (self->listener < 0) {
    take_listener(self);
    return;
  }
  struct seccomp_notif asked;
  memset(&asked, 0, sizeof asked);
  if (events & POLLIN) {
    if (ioctl(self->listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) return; /* the caller is gone, or a signal */
    const int result = answer_to(self, &asked);
    struct seccomp_notif_resp answer;
    memset(&answer, 0, sizeof answer);
    answer.id = asked.id;
    if (result == answered_elsewhere) return;
    if (result == go_on) {
      answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    } else {
      answer.error = -result;
    }
    ioctl(self->listener, SECCOMP_IOCTL_NOTIF_SEND, &answer); /* fails when the caller was killed */
  } else {
    close(self->listener); /* nobody with the filter is left */
    self->listener = -1;
  }
}

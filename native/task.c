#define _GNU_SOURCE
#include "task.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "filter.h"

enum {
  most_attempts = 64,
  page = 4096 /* strings are read up to a border of this: the next page may not be there */
};

bool read_memory(const struct task* task, uint64_t address, void* out, size_t size) {
  return pread(task->mem, out, size, (off_t)address) == (ssize_t)size;
}

/* 0, or an error number. */
int read_string(const struct task* task, uint64_t address, char* out, size_t room) {
  for (size_t have = 0; have < room;) {
    size_t piece = page - (size_t)((address + have) % page);
    if (piece > room - have) piece = room - have;
    const ssize_t n = pread(task->mem, out + have, piece, (off_t)(address + have));
    if (n <= 0) return EFAULT;
    if (memchr(out + have, '\0', (size_t)n)) return 0;
    have += (size_t)n;
  }
  return ENAMETOOLONG;
}

/* The text of a link, with its end; false when there is none, or it is too long. */
bool read_link(int dir, const char* name, char* out, size_t room) {
  const ssize_t n = readlinkat(dir, name, out, room);
  if (n <= 0 || (size_t)n >= room) return false;
  out[n] = '\0';
  return true;
}

bool path_of(int fd, char* out, size_t room) {
  char name[40];
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  return read_link(AT_FDCWD, name, out, room);
}

/* A path that means a descriptor of the process itself, whose number then is *fd. What the kernel would find there from
 * our side is our own. */
/* A descriptor (O_PATH) of what the call is about, or -1 with errno. Links of /proc that lead anywhere are not
 * followed: they would be ours. */
const char* own_way(const char* path, int* at) {
  static const char* const places[] = {"/proc/self/", "/proc/thread-self/"};
  const char* name = strncmp(path, "/dev/fd/", 8) == 0 ? path + 5 : NULL;
  for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
    if (strncmp(path, places[i], strlen(places[i])) == 0) name = path + strlen(places[i]);
  }
  if (!name) return path;
  if (strncmp(name, "root/", 5) == 0) return name + 4;
  long number = AT_FDCWD;
  if (strncmp(name, "fd/", 3) == 0 && name[3] >= '0' && name[3] <= '9') {
    char* end = NULL;
    number = strtol(name + 3, &end, 10);
    name = end;
  } else if (strncmp(name, "cwd", 3) == 0) {
    name += 3;
  } else {
    return path;
  }
  if ((*name && *name != '/') || number > INT_MAX) return path;
  while (*name == '/') ++name;
  *at = (int)number;
  return name;
}

int resolve(const struct task* task, int at, const char* path, bool follow) {
  char name[32];
  int fd = -1;
  if (path) path = own_way(path, &at);
  const int flags = O_PATH | O_CLOEXEC;
  snprintf(name, sizeof name, at == AT_FDCWD ? "cwd" : "fd/%d", at);
  if (!path || !*path) {
    fd = openat(task->dir, name, flags);
    if (fd < 0 && errno == ENOENT) errno = EBADF;
    return fd;
  }
  struct open_how how = {.flags = (uint64_t)(flags | (follow ? 0 : O_NOFOLLOW)), .resolve = RESOLVE_NO_MAGICLINKS};
  const bool absolute = *path == '/';
  const int base = openat(task->dir, absolute ? "root" : name, flags);
  if (base < 0) {
    if (errno == ENOENT) errno = EBADF;
    return -1;
  }
  if (absolute) how.resolve |= RESOLVE_IN_ROOT;
  /* Somebody who renames or mounts meanwhile makes a look at ".." be refused. */
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    fd = (int)syscall(nr_openat2, base, path, &how, sizeof how);
    if (fd >= 0 || errno != EAGAIN) break;
  }
  int error = errno;
  if (fd < 0 && error == ELOOP) { /* more links than there may be, or one that is not followed? */
    how.resolve &= ~(uint64_t)RESOLVE_NO_MAGICLINKS;
    const int any = (int)syscall(nr_openat2, base, path, &how, sizeof how);
    if (any >= 0 || errno != ELOOP) error = EACCES;
    if (any >= 0) close(any);
  }
  close(base);
  errno = error;
  return fd;
}

bool usable_descriptor(const struct task* task, int number) {
  char name[32], text[256];
  if (number < 0) return false;
  snprintf(name, sizeof name, "fdinfo/%d", number);
  const int fd = openat(task->dir, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return false;
  text[n] = '\0';
  const char* flags = strstr(text, "flags:");
  return flags && !(strtoul(flags + 6, NULL, 8) & O_PATH);
}

static bool number_list(const char* status, const char* field, unsigned long* out, size_t room, size_t* count) {
  const char* line = strstr(status, field);
  if (!line) return false;
  line += strlen(field);
  for (*count = 0; *count < room;) {
    while (*line == ' ' || *line == '\t') ++line;
    if (*line < '0' || *line > '9') return true;
    char* end = NULL;
    out[(*count)++] = strtoul(line, &end, 10);
    line = end;
  }
  return false;
}

static bool hex_field(const char* status, const char* field, uint64_t* out) {
  const char* line = strstr(status, field);
  if (line) *out = strtoull(line + strlen(field), NULL, 16);
  return line != NULL;
}

/* Its text lives until the next call; null when there is none. */
static const char* read_status(const struct task* task) {
  static char status[16384];
  const int fd = openat(task->dir, "status", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return NULL;
  const ssize_t n = read(fd, status, sizeof status - 1);
  close(fd);
  if (n <= 0) return NULL;
  status[n] = '\0';
  return status;
}

bool read_identity(const struct task* task, struct identity* out) {
  static unsigned long numbers[most_groups];
  const char* status = read_status(task);
  size_t count = 0;
  if (!status) return false;
  /* Of the four, the last is what the kernel goes by for files. */
  if (!number_list(status, "\nUid:", numbers, 4, &count) && count != 4) return false;
  out->user = (uid_t)numbers[3];
  if (!number_list(status, "\nGid:", numbers, 4, &count) && count != 4) return false;
  out->group = (gid_t)numbers[3];
  if (!number_list(status, "\nGroups:", numbers, most_groups, &count)) return false;
  for (size_t i = 0; i < count; ++i) out->groups[i] = (gid_t)numbers[i];
  out->group_count = count;
  if (!number_list(status, "\nTgid:", numbers, 1, &count) && count != 1) return false;
  out->process = (pid_t)numbers[0];
  return hex_field(status, "\nCapEff:", &out->capabilities);
}

static uint64_t bit(int signal) { return UINT64_C(1) << (signal - 1); }

bool interrupted(const struct task* task) {
  /* What programs catch to learn of something, mostly such that their calls are taken up again. */
  const uint64_t news = bit(SIGCHLD) | bit(SIGWINCH) | bit(SIGURG) | bit(SIGCONT) | bit(SIGIO) | bit(SIGPROF);
  uint64_t own = 0, shared = 0, blocked = 0, caught = 0;
  const char* status = read_status(task);
  return status && hex_field(status, "\nSigPnd:", &own) && hex_field(status, "\nShdPnd:", &shared) &&
         hex_field(status, "\nSigBlk:", &blocked) && hex_field(status, "\nSigCgt:", &caught) &&
         ((own | shared) & caught & ~blocked & ~news);
}

static gid_t own_groups[most_groups];
static int own_group_count = -1; /* -1: the ids are our own */

bool take_ids(const struct task* task) {
  static struct identity who;
  if (geteuid() != 0) return true; /* then nobody it started can be anybody else */
  if (!read_identity(task, &who)) return false;
  if (who.user == 0 && who.group == getegid()) return true;
  own_group_count = getgroups(most_groups, own_groups);
  if (own_group_count < 0 || syscall(SYS_setgroups, who.group_count, who.groups) != 0) return false;
  setfsgid(who.group);
  setfsuid(who.user);
  return (uid_t)setfsuid((uid_t)-1) == who.user && (gid_t)setfsgid((gid_t)-1) == who.group;
}

void take_own_ids(void) {
  if (own_group_count < 0) return;
  setfsuid(geteuid());
  setfsgid(getegid());
  if (syscall(SYS_setgroups, own_group_count, own_groups) != 0) abort(); /* never go on as somebody else */
  own_group_count = -1;
}

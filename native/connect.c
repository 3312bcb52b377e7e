#define _GNU_SOURCE
#include "connect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
  nr_pidfd_open = 434,   /* 5.3 */
  nr_pidfd_getfd = 438,  /* 5.6 */
  pidfd_thread = O_EXCL, /* 6.9 */
  look_every_us = 50000  /* at the signals of whoever waits */
};

union address {
  struct sockaddr any;
  struct sockaddr_un local;
  struct sockaddr_storage room;
};

struct inode {
  dev_t device;
  ino_t number;
};
static struct inode* remembered;
static int remembered_count;

bool remember_sockets(const struct path_list* sockets) {
  if (sockets->count == 0) return true;
  remembered = calloc((size_t)sockets->count, sizeof *remembered);
  if (!remembered) return false;
  for (int i = 0; i < sockets->count; ++i) {
    struct stat info;
    if (lstat(sockets->items[i], &info) == 0 && !S_ISDIR(info.st_mode))
      remembered[remembered_count++] = (struct inode){info.st_dev, info.st_ino};
  }
  return true;
}

/* A socket of the list, under whatever name it has by now, or one below a folder of the list. */
static bool on_list(const struct supervisor* self, int fd, char* path, size_t room) {
  struct stat info;
  if (fstat(fd, &info) != 0 || !path_of(fd, path, room) || within_any(path, &self->sockets)) return true;
  for (int i = 0; i < remembered_count; ++i) {
    if (remembered[i].device == info.st_dev && remembered[i].number == info.st_ino) return true;
  }
  return false;
}

/* Whether every socket of this name, which begins with a NUL, is one of the call's. The kernel's list shows each NUL as
 * '@' and a line break as it is: whoever is named so that a second line seems to be there only adds to the list. A
 * connection that nobody has accepted yet has its server's name, and no inode. */
static bool ours(const struct supervisor* self, const char* name, size_t length) {
  char wanted[sizeof(struct sockaddr_un)];
  if (length > sizeof wanted || !self->proc) return false;
  for (size_t i = 0; i < length; ++i) wanted[i] = name[i] ? name[i] : '@';
  const int fd = openat(dirfd(self->proc), "self/net/unix", O_RDONLY | O_CLOEXEC);
  FILE* list = fd < 0 ? NULL : fdopen(fd, "r");
  if (!list) {
    if (fd >= 0) close(fd);
    return false;
  }
  char* line = NULL;
  size_t room = 0;
  bool any = false, all = true;
  for (ssize_t n; all && (n = getline(&line, &room, list)) > 0;) {
    unsigned long inode = 0;
    int end = 0;
    if (line[n - 1] == '\n') --n;
    if (sscanf(line, "%*s %*x %*x %*x %*x %*x %lu %n", &inode, &end) != 1 || end == 0) continue;
    if (inode == 0 || (size_t)(n - end) != length || memcmp(line + end, wanted, length) != 0) continue;
    any = true;
    all = self->ours(inode);
  }
  free(line);
  fclose(list);
  return any && all;
}

/* A descriptor of the thread `id`, as one of ours; -1 with errno. */
static int take_descriptor(const struct task* task, pid_t id, int number) {
  int process = (int)syscall(nr_pidfd_open, id, pidfd_thread);
  if (process < 0) process = (int)syscall(nr_pidfd_open, id, 0);
  if (process < 0) { /* a kernel that knows processes alone: its threads have their descriptors in common */
    static struct identity who;
    if (!read_identity(task, &who)) return -1;
    process = (int)syscall(nr_pidfd_open, who.process, 0);
  }
  if (process < 0) return -1;
  const int fd = (int)syscall(nr_pidfd_getfd, process, number, 0);
  const int error = errno;
  close(process);
  errno = error;
  return fd;
}

static void wake_up(int number) { (void)number; }

/* From here on we are no more than the process is. */
static bool become(const struct identity* who) {
  if (geteuid() == 0 && (syscall(SYS_setgroups, who->group_count, who->groups) != 0 ||
                         syscall(SYS_setresgid, who->group, who->group, who->group) != 0 ||
                         syscall(SYS_setresuid, who->user, who->user, who->user) != 0))
    return false;
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  struct __user_cap_data_struct data[2];
  if (syscall(SYS_capget, &header, data) != 0) return false;
  for (int i = 0; i < 2; ++i) {
    data[i].permitted &= (uint32_t)(who->capabilities >> (32 * i));
    data[i].effective = data[i].permitted;
    data[i].inheritable = 0;
  }
  return syscall(SYS_capset, &header, data) == 0;
}

static long now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Connects; looks up from waiting now and then. SO_SNDTIMEO begins anew each time, so it is kept here. */
static int connect_or_wait(const struct supervisor* self, const struct task* task, uint64_t id, int socket,
                           const union address* address, socklen_t length) {
  struct timeval limit = {0, 0};
  socklen_t size = sizeof limit;
  getsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, &size);
  const long most = limit.tv_sec * 1000 + limit.tv_usec / 1000, begin = now_ms();
  for (;;) {
    if (connect(socket, &address->any, length) == 0) return 0;
    if (errno != EINTR) return errno;
    if (ioctl(self->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) != 0) _exit(0); /* nobody waits any more */
    if (interrupted(task)) return EINTR;
    if (most && now_ms() - begin >= most) return address->any.sa_family == AF_UNIX ? EAGAIN : EINPROGRESS;
  }
}

/* In a child of ours: connects, and answers. */
static _Noreturn void serve(const struct supervisor* self, const struct task* task, uint64_t id, int socket,
                            const union address* address, socklen_t length) {
  static struct identity who;
  const struct sigaction wake = {.sa_handler = wake_up};
  const struct itimerval often = {{0, look_every_us}, {0, look_every_us}};
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  sigaction(SIGALRM, &wake, NULL);
  int error = EACCES;
  if (read_identity(task, &who) && become(&who)) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of ids clears it */
    sigprocmask(SIG_UNBLOCK, &alarm, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    error = connect_or_wait(self, task, id, socket, address, length);
  }
  struct seccomp_notif_resp answer = {.id = id, .error = -error};
  ioctl(self->listener, SECCOMP_IOCTL_NOTIF_SEND, &answer); /* fails when the caller was killed */
  _exit(0);
}

/* Makes `address` mean what it says to the process. 0, or the error number that is the answer; *held is a descriptor
 * that it needs, or -1. */
static int settle(const struct supervisor* self, const struct task* task, union address* address, socklen_t* length,
                  int* held) {
  const size_t start = offsetof(struct sockaddr_un, sun_path);
  char path[sizeof(struct sockaddr_storage) + 1] = "", place[PATH_MAX];
  if (address->any.sa_family != AF_UNIX || *length <= start) return 0; /* the kernel's to refuse */
  if (!address->local.sun_path[0]) return ours(self, address->local.sun_path, *length - start) ? 0 : EPERM;
  memcpy(path, (const char*)address + start, *length - start);
  *held = -1;
  int error = EACCES;
  if (take_ids(task)) {
    *held = resolve(task, AT_FDCWD, path, true);
    error = *held >= 0 ? 0 : errno;
  }
  take_own_ids();
  if (error) return error;
  if (on_list(self, *held, place, sizeof place)) {
    self->denied("connect", place);
    return EACCES;
  }
  const int n = snprintf(address->local.sun_path, sizeof address->local.sun_path, "/proc/self/fd/%d", *held);
  *length = (socklen_t)(start + (size_t)n + 1);
  return 0;
}

int connect_for(const struct supervisor* self, const struct task* task, const struct seccomp_notif* asked) {
  union address address;
  memset(&address, 0, sizeof address);
  const int given = (int)asked->data.args[2];
  socklen_t length = (socklen_t)given;
  if (given < 0 || length > sizeof address.room) return EINVAL;
  if (length && !read_memory(task, asked->data.args[1], &address, length)) return EFAULT;
  const int socket = take_descriptor(task, (pid_t)asked->pid, (int)asked->data.args[0]);
  if (socket < 0) return errno == EPERM ? EACCES : errno;
  int domain = 0, held = -1, error = 0;
  socklen_t size = sizeof domain;
  if (getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0) error = errno;
  if (!error && domain == AF_UNIX) error = settle(self, task, &address, &length, &held);
  if (!error) {
    const pid_t child = fork();
    if (child == 0) serve(self, task, asked->id, socket, &address, length);
    error = child < 0 ? EAGAIN : answered_elsewhere;
  }
  if (held >= 0) close(held);
  close(socket);
  return error;
}

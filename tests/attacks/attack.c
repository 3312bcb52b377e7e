/* attack: one unusual system call, by name, for the cases beside it. Stand-alone static C11; includes nothing of ours.
 *
 *   attack OP [ARG]...
 *   attack in-userns OP [ARG]...      the same after unshare(CLONE_NEWUSER | CLONE_NEWNS)
 *   attack repeat N OP [ARG]...       for races; descriptors it opens stay open, so N is a few hundred
 *
 * Exit 0: the kernel said yes. 1: it refused, with one line that names the step. 2: called wrongly. None of that is a
 * verdict: a case looks from outside at what has happened. Every operation is bounded in time and starts at most one
 * process. Operations whose effect only a host process shows work on `victim`, which answers questions about itself.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

/* Numbers newer than the headers of Debian 12 (6.1); the same on every architecture from 424 on. */
enum {
  nr_open_tree = 428,
  nr_move_mount = 429,
  nr_fsopen = 430,
  nr_fsconfig = 431,
  nr_fsmount = 432,
  nr_pidfd_open = 434,
  nr_openat2 = 437,
  nr_pidfd_getfd = 438,
  nr_mount_setattr = 442,
  nr_fchmodat2 = 452,      /* 6.6 */
  nr_setxattrat = 463,     /* 6.13 */
  nr_removexattrat = 466,  /* 6.13 */
  nr_file_getattr = 468,   /* 6.17 */
  nr_file_setattr = 469    /* 6.17 */
};

static const char* op_name;

static int refused(const char* step) {
  fprintf(stderr, "attack %s: %s: %s\n", op_name, step, strerror(errno));
  return 1;
}

static int check(long result, const char* step) { return result < 0 ? refused(step) : 0; }

static int put(int fd) {
  if (fd < 0) return refused("open");
  const int result = check(write(fd, "PWN\n", 4), "write");
  if (fd > 9) close(fd);      /* lower ones may be what somebody gave us */
  return result;
}

static long number(const char* text) { return strtol(text, NULL, 0); }

/* -- files ------------------------------------------------------------------------------------------------------- */

static int op_create(char** a) { return put(open(a[0], O_CREAT | O_WRONLY, 0644)); }
static int op_append(char** a) { return put(open(a[0], O_WRONLY | O_APPEND)); }
static int op_truncate(char** a) { return check(truncate(a[0], 0), "truncate"); }
static int op_cut(char** a) { return check(open(a[0], O_RDONLY | O_TRUNC), "open"); }
static int op_link(char** a) { return check(link(a[0], a[1]), "link"); }
static int op_rename(char** a) { return check(rename(a[0], a[1]), "rename"); }

static int rename_with(char** a, unsigned flags) {
  return check(syscall(SYS_renameat2, AT_FDCWD, a[0], AT_FDCWD, a[1], flags), "renameat2");
}
static int op_exchange(char** a) { return rename_with(a, 2); }
static int op_whiteout(char** a) { return rename_with(a, 4); }

static int op_openat2(char** a) {
  const struct {
    uint64_t flags, mode, resolve;
  } how = {O_CREAT | O_WRONLY, 0644, 0};
  return put((int)syscall(nr_openat2, AT_FDCWD, a[0], &how, sizeof how));
}

static int op_link_write(char** a) {
  if (link(a[0], a[1]) != 0) return refused("link");
  return put(open(a[1], O_WRONLY | O_TRUNC));
}

static int op_tmpfile(char** a) {
  const int fd = open(a[0], O_TMPFILE | O_RDWR, 0644);
  char self[64];
  if (put(fd) != 0) return 1;
  snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
  return check(linkat(AT_FDCWD, self, AT_FDCWD, a[1], AT_SYMLINK_FOLLOW), "linkat");
}

static int op_map(char** a) {
  const int fd = open(a[0], O_RDONLY);
  char* memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return refused("mmap");
  memory[0] = '!';
  return 0;
}

static int op_map_then_protect(char** a) {
  const int fd = open(a[0], O_RDONLY);
  char* memory = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return refused("mmap");
  if (mprotect(memory, 4096, PROT_READ | PROT_WRITE) != 0) return refused("mprotect");
  memory[0] = '!';
  return 0;
}

static int reopen(char** a, int flags) {
  const int fd = open(a[0], flags);
  char self[64];
  if (fd < 0) return refused("open");
  snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
  return put(open(self, O_WRONLY));
}
static int op_reopen(char** a) { return reopen(a, O_RDONLY); }
static int op_reopen_path(char** a) { return reopen(a, O_PATH); }

/* A private mapping is written through /proc/self/mem, which ignores page protection, but must stay private. */
static int op_own_mem(char** a) {
  const int fd = open(a[0], O_RDONLY), mem = open("/proc/self/mem", O_RDWR);
  char* memory = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return refused("mmap");
  return check(pwrite(mem, "PWN", 3, (off_t)(uintptr_t)memory), "pwrite");
}

static int op_handle(char** a) {
  struct {
    struct file_handle head;
    unsigned char room[MAX_HANDLE_SZ];
  } handle = {.head = {.handle_bytes = MAX_HANDLE_SZ}};
  int mount_id = 0;
  if (name_to_handle_at(AT_FDCWD, a[0], &handle.head, &mount_id, 0) != 0) return refused("name_to_handle_at");
  const int mount_fd = open("/", O_RDONLY | O_DIRECTORY);
  const int fd = open_by_handle_at(mount_fd, &handle.head, O_WRONLY | O_TRUNC);
  return put(fd);
}

static int op_node(char** a) {
  const mode_t type = a[1][0] == 'b' ? S_IFBLK : S_IFCHR;
  return check(mknod(a[0], type | 0666, makedev((unsigned)number(a[2]), (unsigned)number(a[3]))), "mknod");
}

static int op_chroot(char** a) {
  if (chroot(a[0]) != 0) return refused("chroot");
  return put(open(a[1], O_CREAT | O_WRONLY, 0644));
}

static int op_flock(char** a) {
  const int fd = open(a[0], O_RDONLY);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) return refused("flock");
  pause();
  return 0;
}

static int op_memfd_exec(char** a) {
  const int from = open("/proc/self/exe", O_RDONLY), to = memfd_create("attack", 0);
  static char buffer[1 << 16];
  for (ssize_t n; (n = read(from, buffer, sizeof buffer)) > 0;)
    if (write(to, buffer, (size_t)n) != n) return refused("write");
  char* argv[] = {(char*)"attack", (char*)"create", a[0], NULL};
  fexecve(to, argv, environ);
  return refused("fexecve");
}

/* -- metadata ---------------------------------------------------------------------------------------------------- */

static const struct timespec old_times[2] = {{1000, 0}, {1000, 0}};
static const struct timeval old_times_us[2] = {{1000, 0}, {1000, 0}};

struct file_attr { /* 6.17 */
  uint64_t xflags;
  uint32_t extsize, nextents, projid, cowextsize;
};

/* Changes by path. */
static long change_path(const char* how, const char* path) {
  struct {
    uint64_t value;
    uint32_t size, flags;
  } xattr_args = {(uint64_t)(uintptr_t) "1", 1, 0};
  /* other: rwx. Header, then {tag, permissions, id} for owner, group, other. */
  static const unsigned char acl[] = {2, 0, 0, 0, 1,    0, 7, 0, 255, 255, 255, 255, 4, 0, 7,
                                      0, 255, 255, 255, 255, 32, 0, 7, 0, 255, 255, 255, 255};
  if (strcmp(how, "chmod") == 0) return chmod(path, 0777);
  if (strcmp(how, "chmod-setuid") == 0) return chmod(path, 06777);
  if (strcmp(how, "chmod-000") == 0) return chmod(path, 0);
  if (strcmp(how, "fchmodat") == 0) return syscall(SYS_fchmodat, AT_FDCWD, path, 0777);
  if (strcmp(how, "fchmodat2") == 0) return syscall(nr_fchmodat2, AT_FDCWD, path, 0777, 0);
  if (strcmp(how, "chown") == 0) return chown(path, (uid_t)-1, getegid());
  if (strcmp(how, "lchown") == 0) return lchown(path, (uid_t)-1, getegid());
  if (strcmp(how, "fchownat") == 0) return fchownat(AT_FDCWD, path, (uid_t)-1, getegid(), 0);
  if (strcmp(how, "utimensat") == 0) return utimensat(AT_FDCWD, path, old_times, 0);
  if (strcmp(how, "utimes") == 0) return utimes(path, old_times_us);
  if (strcmp(how, "setxattr") == 0) return setxattr(path, "user.pwn", "1", 1, 0);
  if (strcmp(how, "lsetxattr") == 0) return lsetxattr(path, "user.pwn", "1", 1, 0);
  if (strcmp(how, "setxattrat") == 0)
    return syscall(nr_setxattrat, AT_FDCWD, path, 0, "user.pwn", &xattr_args, sizeof xattr_args);
  if (strcmp(how, "removexattr") == 0) return removexattr(path, "user.mark");
  if (strcmp(how, "lremovexattr") == 0) return lremovexattr(path, "user.mark");
  if (strcmp(how, "removexattrat") == 0) return syscall(nr_removexattrat, AT_FDCWD, path, 0, "user.mark");
  if (strcmp(how, "acl") == 0) return setxattr(path, "system.posix_acl_access", acl, sizeof acl, 0);
  if (strcmp(how, "file-setattr") == 0) {
    struct file_attr attr = {0};
    if (syscall(nr_file_getattr, AT_FDCWD, path, &attr, sizeof attr, 0) < 0) return -1;
    attr.xflags |= 0x40; /* noatime */
    return syscall(nr_file_setattr, AT_FDCWD, path, &attr, sizeof attr, 0);
  }
#if defined(__x86_64__)
  if (strcmp(how, "utime") == 0) return syscall(SYS_utime, path, &(const struct utimbuf){1000, 1000});
  if (strcmp(how, "futimesat") == 0) return syscall(SYS_futimesat, AT_FDCWD, path, old_times_us);
#endif
  errno = EINVAL;
  return -1;
}

/* Changes by an open descriptor, which need not be writable. */
static long change_fd(const char* how, int fd) {
  char self[64];
  snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
  if (strcmp(how, "fchmod") == 0) return fchmod(fd, 0777);
  if (strcmp(how, "fchmod-empty-path") == 0) return syscall(nr_fchmodat2, fd, "", 0777, AT_EMPTY_PATH);
  if (strcmp(how, "chmod-proc-fd") == 0) return chmod(self, 0777);
  if (strcmp(how, "fchown") == 0) return fchown(fd, (uid_t)-1, getegid());
  if (strcmp(how, "futimens") == 0) return futimens(fd, old_times);
  if (strcmp(how, "utimensat-null") == 0) return syscall(SYS_utimensat, fd, NULL, old_times, 0);
  if (strcmp(how, "fsetxattr") == 0) return fsetxattr(fd, "user.pwn", "1", 1, 0);
  if (strcmp(how, "fremovexattr") == 0) return fremovexattr(fd, "user.mark");
  if (strcmp(how, "set-flags") == 0 || strcmp(how, "set-flags-high") == 0) {
    long flags = 0;
    const unsigned long high = how[9] ? 1ul << 32 : 0;
    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) != 0) return -1;
    flags |= FS_NOATIME_FL;
    return syscall(SYS_ioctl, fd, FS_IOC_SETFLAGS | high, &flags);
  }
  if (strcmp(how, "set-fsxattr") == 0) {
    struct fsxattr attr;
    if (ioctl(fd, FS_IOC_FSGETXATTR, &attr) != 0) return -1;
    attr.fsx_xflags |= FS_XFLAG_NODUMP;
    return ioctl(fd, FS_IOC_FSSETXATTR, &attr);
  }
  if (strcmp(how, "set-version") == 0) {
    int generation = 7;
    return ioctl(fd, FS_IOC_SETVERSION, &generation);
  }
  errno = EINVAL;
  return -1;
}

static int op_meta(char** a) { return check(change_path(a[0], a[1]), a[0]); }
static int op_meta_fd(char** a) { return check(change_fd(a[0], (int)number(a[1])), a[0]); }
static int op_meta_open(char** a) {
  const int fd = open(a[1], O_RDONLY | O_NONBLOCK);
  return fd < 0 ? refused("open") : check(change_fd(a[0], fd), a[0]);
}
static int op_meta_opath(char** a) {
  const int fd = open(a[1], O_PATH);
  return fd < 0 ? refused("open") : check(change_fd(a[0], fd), a[0]);
}

/* What a supervisor that looks at names or at another thread's tables would be told wrongly. */

static int op_chroot_chmod(char** a) {
  if (chroot(a[0]) != 0) return refused("chroot");
  return check(chmod(a[1], 0777), "chmod");
}

/* One process changes the name while another uses it. */
static int op_race_chmod(char** a) {
  char* name = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (name == MAP_FAILED) return refused("mmap");
  snprintf(name, 4096, "%s", a[0]);
  const pid_t flipper = fork();
  if (flipper == 0) {
    for (int i = 0; i < 2000000; ++i) memcpy(name, a[i & 1], strlen(a[i & 1]) + 1);
    _exit(0);
  }
  for (int i = 0; i < 20000; ++i) {
    chmod(name, 0777);
    if (i % 256 == 0 && waitpid(flipper, NULL, WNOHANG) != 0) break;
  }
  kill(flipper, SIGKILL);
  return 0;
}

struct thread_task {
  const char *open, *chdir, *name;
  int fd;
  long result;
};

static void* in_thread(void* argument) {
  struct thread_task* task = argument;
  if (unshare(task->chdir ? CLONE_FS : CLONE_FILES) != 0) return NULL;
  if (task->chdir) {
    if (chdir(task->chdir) == 0) task->result = chmod(task->name, 0777);
  } else {
    const int fd = open(task->open, O_RDONLY);
    if (fd >= 0 && dup2(fd, task->fd) >= 0) task->result = fchmod(task->fd, 0777);
  }
  return NULL;
}

static int run_thread(struct thread_task task) {
  pthread_t thread;
  task.result = -1;
  if (pthread_create(&thread, NULL, in_thread, &task) != 0) return refused("thread");
  pthread_join(thread, NULL);
  return task.result == 0 ? 0 : 1;
}

/* The number means one file for the process and another for one of its threads. */
static int op_thread_fchmod(char** a) {
  const int fd = open(a[0], O_RDONLY);
  return fd < 0 ? refused("open") : run_thread((struct thread_task){.open = a[1], .fd = fd});
}
static int op_thread_chmod(char** a) { return run_thread((struct thread_task){.chdir = a[0], .name = a[1]}); }

/* -- inherited descriptors --------------------------------------------------------------------------------------- */

static int op_fd_write(char** a) { return put((int)number(a[0])); }
static int op_fd_openat(char** a) { return put(openat((int)number(a[0]), a[1], O_CREAT | O_WRONLY, 0644)); }
static int op_fd_truncate(char** a) { return check(ftruncate((int)number(a[0]), 0), "ftruncate"); }
static int op_fd_chdir(char** a) {
  if (fchdir((int)number(a[0])) != 0) return refused("fchdir");
  return put(open(a[1], O_CREAT | O_WRONLY, 0644));
}
static int op_fd_unlinkat(char** a) { return check(unlinkat((int)number(a[0]), a[1], 0), "unlinkat"); }

/* -- io_uring ---------------------------------------------------------------------------------------------------- */

/* Submits one entry and waits for its answer. */
static int uring(const struct io_uring_sqe* entry) {
  struct io_uring_params p;
  memset(&p, 0, sizeof p);
  const int ring = (int)syscall(SYS_io_uring_setup, 2, &p);
  if (ring < 0) return refused("io_uring_setup");
  const size_t sq_size = p.sq_off.array + p.sq_entries * sizeof(unsigned);
  const size_t cq_size = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
  const int both = PROT_READ | PROT_WRITE;
  char* sq = mmap(NULL, sq_size, both, MAP_SHARED, ring, IORING_OFF_SQ_RING);
  char* cq = mmap(NULL, cq_size, both, MAP_SHARED, ring, IORING_OFF_CQ_RING);
  struct io_uring_sqe* entries = mmap(NULL, p.sq_entries * sizeof *entry, both, MAP_SHARED, ring, IORING_OFF_SQES);
  if (sq == MAP_FAILED || cq == MAP_FAILED || entries == MAP_FAILED) return refused("mmap");
  entries[0] = *entry;
  *(unsigned*)(void*)(sq + p.sq_off.array) = 0;
  __atomic_add_fetch((unsigned*)(void*)(sq + p.sq_off.tail), 1, __ATOMIC_RELEASE);
  if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0) return refused("io_uring_enter");
  const struct io_uring_cqe* answer = (const void*)(cq + p.cq_off.cqes);
  if (answer->res >= 0) return answer->res;
  errno = -answer->res;
  return -1;
}

static int op_uring(char** a) {
  const char* what = a[0];
  struct io_uring_sqe e;
  memset(&e, 0, sizeof e);
  e.fd = AT_FDCWD;
  e.addr = (uintptr_t)a[1];
  if (strcmp(what, "create") == 0) {
    e.opcode = IORING_OP_OPENAT;
    e.open_flags = O_CREAT | O_WRONLY;
    e.len = 0644;
  } else if (strcmp(what, "truncate") == 0) {
    e.opcode = IORING_OP_OPENAT;
    e.open_flags = O_TRUNC | O_WRONLY;
  } else if (strcmp(what, "unlink") == 0) {
    e.opcode = IORING_OP_UNLINKAT;
  } else if (strcmp(what, "mkdir") == 0) {
    e.opcode = IORING_OP_MKDIRAT;
    e.len = 0755;
  } else if (strcmp(what, "rename") == 0 || strcmp(what, "link") == 0) {
    e.opcode = what[0] == 'r' ? IORING_OP_RENAMEAT : IORING_OP_LINKAT;
    e.len = (unsigned)AT_FDCWD;
    e.addr2 = (uintptr_t)a[2];
  } else if (strcmp(what, "symlink") == 0) {
    e.opcode = IORING_OP_SYMLINKAT;
    e.addr2 = (uintptr_t)a[2];
  } else if (strcmp(what, "setxattr") == 0 || strcmp(what, "fsetxattr") == 0) {
    e.opcode = what[0] == 'f' ? IORING_OP_FSETXATTR : IORING_OP_SETXATTR;
    if (what[0] == 'f') e.fd = open(a[1], O_RDONLY);
    e.addr3 = (uintptr_t)a[1];
    e.addr = (uintptr_t) "user.pwn";
    e.addr2 = (uintptr_t) "1";
    e.len = 1;
  } else {
    return 2;
  }
  return check(uring(&e), what);
}

/* -- calls by the numbers of other ABIs -------------------------------------------------------------------------- */

struct foreign {
  const char* name;
  long i386, x32;
  int paths;             /* how many leading arguments are paths */
  long third, fourth;    /* the arguments after the first path, or after both */
};

static const struct foreign foreign_calls[] = {
    {"create", 5, 2, 1, O_CREAT | O_WRONLY, 0644}, {"truncate", 5, 2, 1, O_TRUNC | O_WRONLY, 0},
    {"chmod", 15, 90, 1, 0777, 0},                 {"mkdir", 39, 83, 1, 0755, 0},
    {"unlink", 10, 87, 1, 0, 0},                   {"lchown", 198, 94, 1, -1, -2},
    {"rename", 38, 82, 2, 0, 0},                   {"link", 9, 86, 2, 0, 0},
    {"utime", 30, 132, 1, 0, 0},                   {"kill", 37, 62, 0, 0, 0},
};

#if defined(__x86_64__)
static long call_i386(long nr, long a, long b, long c) {
  long result = nr;
  __asm__ volatile("int $0x80" : "+a"(result) : "b"(a), "c"(b), "d"(c) : "memory", "r8", "r9", "r10", "r11");
  return result;
}

static int foreign(char** a, int x32) {
  for (size_t i = 0; i < sizeof foreign_calls / sizeof *foreign_calls; ++i) {
    const struct foreign* f = &foreign_calls[i];
    if (strcmp(a[0], f->name) != 0) continue;
    /* A 32-bit call takes 32-bit pointers. */
    char* low = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    if (low == MAP_FAILED) return refused("mmap");
    long args[3] = {number(a[1]), a[1][0] == '/' ? 0 : number(a[2]), 0};
    if (f->paths >= 1) {
      snprintf(low, 4096, "%s", a[1]);
      args[0] = (long)(uintptr_t)low;
      args[1] = f->third;
      args[2] = f->fourth == -2 ? (long)getegid() : f->fourth;
    }
    if (f->paths == 2) {
      snprintf(low + 4096, 4096, "%s", a[2]);
      args[1] = (long)(uintptr_t)(low + 4096);
    }
    long result = x32 ? syscall(0x40000000L | f->x32, args[0], args[1], args[2])
                      : call_i386(f->i386, args[0], args[1], args[2]);
    if (!x32 && result < 0) {
      errno = (int)-result;
      result = -1;
    }
    return check(result, f->name);
  }
  return 2;
}
#else
static int foreign(char** a, int x32) {
  errno = ENOSYS;
  return check(-1, x32 ? "x32" : a[0]);
}
#endif
static int op_i386(char** a) { return foreign(a, 0); }
static int op_x32(char** a) { return foreign(a, 1); }

/* -- processes --------------------------------------------------------------------------------------------------- */

static char victim_memory[8] = "ORIG";
static volatile sig_atomic_t victim_signals;
static void count_signal(int number_) {
  (void)number_;
  ++victim_signals;
}

/* Prints pid, address of four bytes, an open descriptor; then a line about itself for every line it reads. */
static int op_victim(char** a) {
  const int fd = open(a[0], O_CREAT | O_WRONLY | O_APPEND, 0644);
  static const int counted[] = {SIGUSR1, SIGIO, SIGHUP, SIGTERM, SIGINT};
  for (size_t i = 0; i < sizeof counted / sizeof *counted; ++i) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = count_signal;
    action.sa_flags = SA_RESTART;
    sigaction(counted[i], &action, NULL);
  }
  printf("%d %p %d\n", (int)getpid(), (void*)victim_memory, fd);
  fflush(stdout);
  char line[16];
  while (fgets(line, sizeof line, stdin)) {
    struct rlimit limit = {0, 0};
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    getrlimit(RLIMIT_NOFILE, &limit);
    sched_getaffinity(0, sizeof cpus, &cpus);
    printf("%.4s signals=%d nofile=%ld nice=%d cpus=%d policy=%d ioprio=%ld group=%d\n", victim_memory,
           (int)victim_signals, (long)limit.rlim_cur, getpriority(PRIO_PROCESS, 0), CPU_COUNT(&cpus),
           sched_getscheduler(0), syscall(SYS_ioprio_get, 1, 0), (int)getpgrp());
    fflush(stdout);
  }
  return 0;
}

static int op_signal(char** a) { return check(kill((pid_t)number(a[0]), (int)number(a[1])), "kill"); }
static int op_thread_signal(char** a) {
  return check(syscall(SYS_tgkill, number(a[0]), number(a[0]), number(a[1])), "tgkill");
}
static int op_queue_signal(char** a) {
  return check(sigqueue((pid_t)number(a[0]), (int)number(a[1]), (union sigval){.sival_int = 1}), "sigqueue");
}
static int op_pidfd_signal(char** a) {
  const int fd = (int)syscall(nr_pidfd_open, number(a[0]), 0);
  if (fd < 0) return refused("pidfd_open");
  return check(syscall(SYS_pidfd_send_signal, fd, number(a[1]), NULL, 0), "pidfd_send_signal");
}

/* The kernel signals the owner of a descriptor when it becomes readable. */
static int op_owner_signal(char** a) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return refused("socketpair");
  if (fcntl(pair[0], F_SETOWN, (pid_t)number(a[0])) != 0) return refused("F_SETOWN");
  fcntl(pair[0], F_SETSIG, SIGUSR1);
  if (fcntl(pair[0], F_SETFL, O_ASYNC | O_NONBLOCK) != 0) return refused("O_ASYNC");
  return put(pair[1]);
}

static int op_ptrace(char** a) {
  const pid_t pid = (pid_t)number(a[0]);
  if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) != 0) return refused("attach");
  waitpid(pid, NULL, __WALL);
  long word = 0;
  memcpy(&word, "PWNED\0\0", sizeof word);
  const long rc = ptrace(PTRACE_POKEDATA, pid, (void*)number(a[1]), (void*)word);
  ptrace(PTRACE_DETACH, pid, NULL, NULL);
  return check(rc, "poke");
}

static int op_seize(char** a) {
  const pid_t pid = (pid_t)number(a[0]);
  if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0) return refused("seize");
  if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) != 0) return refused("interrupt");
  waitpid(pid, NULL, __WALL);
  long word = 0;
  memcpy(&word, "PWNED\0\0", sizeof word);
  const long rc = ptrace(PTRACE_POKEDATA, pid, (void*)number(a[1]), (void*)word);
  ptrace(PTRACE_DETACH, pid, NULL, NULL);
  return check(rc, "poke");
}

static int op_trace_child(char** a) {
  (void)a;
  const pid_t pid = fork();
  if (pid == 0) {
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGSTOP);
    _exit(victim_memory[0] == 'P' ? 0 : 9);
  }
  waitpid(pid, NULL, 0);
  long word = 0;
  memcpy(&word, "PWNED\0\0", sizeof word);
  if (ptrace(PTRACE_POKEDATA, pid, (void*)victim_memory, (void*)word) != 0) return refused("poke");
  ptrace(PTRACE_DETACH, pid, NULL, NULL);
  int status = 1;
  waitpid(pid, &status, 0);
  return status == 0 ? 0 : 1;
}

static int op_vm_write(char** a) {
  char text[] = "PWN";
  const struct iovec local = {text, 4}, remote = {(void*)number(a[1]), 4};
  return check(process_vm_writev((pid_t)number(a[0]), &local, 1, &remote, 1, 0), "process_vm_writev");
}

static int op_mem_write(char** a) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/mem", a[0]);
  const int fd = open(path, O_RDWR);
  if (fd < 0) return refused("open");
  return check(pwrite(fd, "PWN", 4, number(a[1])), "pwrite");
}

static int op_take_fd(char** a) {
  const int pidfd = (int)syscall(nr_pidfd_open, number(a[0]), 0);
  if (pidfd < 0) return refused("pidfd_open");
  return put((int)syscall(nr_pidfd_getfd, pidfd, number(a[1]), 0));
}

static int op_limit(char** a) {
  const struct rlimit limit = {77, 77};
  return check(prlimit((pid_t)number(a[0]), RLIMIT_NOFILE, &limit, NULL), "prlimit");
}
static int op_priority(char** a) { return check(setpriority(PRIO_PROCESS, (id_t)number(a[0]), 15), "setpriority"); }
static int op_io_priority(char** a) {
  return check(syscall(SYS_ioprio_set, 1, number(a[0]), (3 << 13) | 7), "ioprio_set");
}
static int op_scheduler(char** a) {
  const struct sched_param param = {0};
  return check(sched_setscheduler((pid_t)number(a[0]), SCHED_IDLE, &param), "sched_setscheduler");
}
static int op_affinity(char** a) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  return check(sched_setaffinity((pid_t)number(a[0]), sizeof one, &one), "sched_setaffinity");
}

static int op_join_mounts(char** a) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/ns/mnt", a[0]);
  const int fd = open(path, O_RDONLY);
  if (fd < 0) return refused("open");
  if (setns(fd, CLONE_NEWNS) != 0) return refused("setns");
  return put(open(a[1], O_CREAT | O_WRONLY, 0644));
}

/* Leaves a process behind that tries hard to stay, for at most four seconds. */
static int op_daemon(char** a) {
  if (fork() != 0) return 0;
  setsid();
  if (fork() != 0) _exit(0);
  for (int i = 1; i < NSIG; ++i) signal(i, SIG_IGN);
  for (int fd = 0; fd < 3; ++fd) close(fd);
  for (int i = 0; i < 40; ++i) {
    const int fd = open(a[0], O_CREAT | O_WRONLY | O_APPEND, 0644);
    if (fd >= 0 && write(fd, ".", 1) != 1) _exit(1);
    if (fd >= 0) close(fd);
    usleep(100000);
  }
  return 0;
}

/* A child of our parent rather than of ours. */
static int op_sibling(char** a) {
  const long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
  if (pid != 0) return check(pid, "clone");
  execl("/bin/sleep", a[0], "4", (char*)NULL);
  _exit(1);
}

/* -- kernel ------------------------------------------------------------------------------------------------------ */

static int op_hostname(char** a) { return check(sethostname(a[0], strlen(a[0])), "sethostname"); }
static int op_domainname(char** a) { return check(setdomainname(a[0], strlen(a[0])), "setdomainname"); }
static int op_loglevel(char** a) { return check(syscall(SYS_syslog, 8, NULL, number(a[0])), "syslog"); }
static int op_acct(char** a) { return check(acct(a[0]), "acct"); }

static int op_mount_tmpfs(char** a) { return check(mount("none", a[0], "tmpfs", 0, "size=64k"), "mount"); }
static int op_mount_bind(char** a) { return check(mount(a[0], a[1], NULL, MS_BIND, NULL), "mount"); }
static int op_umount(char** a) { return check(umount2(a[0], MNT_DETACH), "umount2"); }
static int op_remount(char** a) {
  if (mount(NULL, a[0], NULL, MS_REMOUNT | MS_BIND, NULL) != 0) return refused("mount");
  return put(open(a[1], O_CREAT | O_WRONLY, 0644));
}

struct mount_attr_v1 {
  uint64_t set, clear, propagation, userns;
};
static const struct mount_attr_v1 make_writable = {0, 1, 0, 0};

static int op_mount_setattr(char** a) {
  if (syscall(nr_mount_setattr, AT_FDCWD, a[0], AT_RECURSIVE, &make_writable, sizeof make_writable) != 0)
    return refused("mount_setattr");
  return put(open(a[1], O_CREAT | O_WRONLY, 0644));
}
static int op_open_tree(char** a) {
  const int tree = (int)syscall(nr_open_tree, AT_FDCWD, a[0], 1 | AT_RECURSIVE);
  if (tree < 0) return refused("open_tree");
  if (syscall(nr_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &make_writable, sizeof make_writable) != 0)
    return refused("mount_setattr");
  return put(openat(tree, a[1], O_CREAT | O_WRONLY, 0644));
}
static int op_new_mount(char** a) {
  const int context = (int)syscall(nr_fsopen, "tmpfs", 0);
  if (context < 0) return refused("fsopen");
  if (syscall(nr_fsconfig, context, 6, NULL, NULL, 0) != 0) return refused("fsconfig");
  const int made = (int)syscall(nr_fsmount, context, 0, 0);
  if (made < 0) return refused("fsmount");
  return check(syscall(nr_move_mount, made, "", AT_FDCWD, a[0], 4), "move_mount");
}

static int write_file(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY);
  const int rc = fd < 0 || write(fd, text, strlen(text)) < 0 ? -1 : 0;
  if (fd >= 0) close(fd);
  return rc;
}

static int enter_userns(void) {
  char map[64];
  const unsigned uid = getuid(), gid = getgid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return refused("unshare");
  write_file("/proc/self/setgroups", "deny");
  snprintf(map, sizeof map, "0 %u 1", uid);
  if (write_file("/proc/self/uid_map", map) != 0) return refused("uid_map");
  snprintf(map, sizeof map, "0 %u 1", gid);
  return check(write_file("/proc/self/gid_map", map), "gid_map");
}

static int op_nothing(char** a) {
  (void)a;
  return 0;
}

static int op_add_key(char** a) { return check(syscall(SYS_add_key, "user", a[0], "v", 1, -4), "add_key"); }
static int op_find_key(char** a) { return check(syscall(SYS_keyctl, 10, -4, "user", a[0], 0), "search"); }
static int op_drop_key(char** a) {
  const long key = syscall(SYS_keyctl, 10, -4, "user", a[0], 0);
  return key < 0 ? refused("search") : check(syscall(SYS_keyctl, 9, key, -4), "unlink");
}

/* -- sockets, terminals, IPC ------------------------------------------------------------------------------------- */

static socklen_t address_of(struct sockaddr_un* address, const char* name) {
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  const size_t length = strlen(name);
  memcpy(address->sun_path, name, length < sizeof address->sun_path ? length : sizeof address->sun_path - 1);
  if (name[0] != '@') return sizeof *address;
  address->sun_path[0] = '\0';
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

static int connected(const char* name, int type) {
  struct sockaddr_un address;
  const socklen_t length = address_of(&address, name);
  const int fd = socket(AF_UNIX, type, 0);
  return fd < 0 || connect(fd, (const void*)&address, length) != 0 ? -1 : fd;
}

static int op_connect(char** a) {
  const int fd = connected(a[0], SOCK_STREAM);
  char answer;
  if (fd < 0) return refused("connect");
  return check(read(fd, &answer, 1), "read");
}
static int op_datagram(char** a) {
  struct sockaddr_un address;
  const socklen_t length = address_of(&address, a[0]);
  const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
  return check(sendto(fd, "PWN", 3, 0, (const void*)&address, length), "sendto");
}
static int op_bind(char** a) {
  struct sockaddr_un address;
  const socklen_t length = address_of(&address, a[0]);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  return check(bind(fd, (const void*)&address, length), "bind");
}

/* The server answers with a descriptor that may be written. */
static int op_receive_fd(char** a) {
  const int socket_fd = connected(a[0], SOCK_STREAM);
  char byte;
  union {
    struct cmsghdr head;
    char room[CMSG_SPACE(sizeof(int))];
  } control;
  struct iovec data = {&byte, 1};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  if (socket_fd < 0) return refused("connect");
  if (recvmsg(socket_fd, &message, 0) <= 0 || !CMSG_FIRSTHDR(&message)) return refused("recvmsg");
  int fd = -1;
  memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  return put(fd);
}

static int op_type(char** a) { return check(ioctl((int)number(a[0]), TIOCSTI, "#"), "TIOCSTI"); }
static int op_type_high(char** a) {
  return check(syscall(SYS_ioctl, (int)number(a[0]), (1ul << 32) | TIOCSTI, "#"), "TIOCSTI");
}
static int op_type_tty(char** a) {
  (void)a;
  const int fd = open("/dev/tty", O_RDWR);
  return fd < 0 ? refused("open") : check(ioctl(fd, TIOCSTI, "#"), "TIOCSTI");
}

/* For the host: the rest of the arguments with this terminal as the controlling one. */
static int op_on_tty(char** a) {
  setsid();
  const int fd = open(a[0], O_RDWR);
  if (fd < 0) return refused("open");
  if (ioctl(fd, TIOCSCTTY, 0) != 0) return refused("TIOCSCTTY");
  dup2(fd, 0);
  if (fd > 2) close(fd);
  execvp(a[1], a + 1);
  return refused("exec");
}

static int op_shm(char** a) { return check(shmget((key_t)number(a[0]), 4096, IPC_CREAT | 0600), "shmget"); }
static int op_msg(char** a) { return check(msgget((key_t)number(a[0]), IPC_CREAT | 0600), "msgget"); }
static int op_sem(char** a) { return check(semget((key_t)number(a[0]), 1, IPC_CREAT | 0600), "semget"); }
static int op_shm_write(char** a) {
  const int id = shmget((key_t)number(a[0]), 0, 0);
  if (id < 0) return refused("shmget");
  char* memory = shmat(id, NULL, 0);
  if (memory == (void*)-1) return refused("shmat");
  memcpy(memory, "PWN", 4);
  return 0;
}
static int op_shm_print(char** a) {
  const char* memory = shmat(shmget((key_t)number(a[0]), 0, 0), NULL, SHM_RDONLY);
  if (memory == (void*)-1) return refused("shmat");
  printf("%.3s", memory);
  return 0;
}
static int op_mq(char** a) {
  struct mq_attr attr = {.mq_maxmsg = 2, .mq_msgsize = 16};
  return check(mq_open(a[0], O_CREAT | O_RDWR, 0600, &attr), "mq_open");
}
static int op_mq_find(char** a) { return check(mq_open(a[0], O_RDONLY | O_NONBLOCK), "mq_open"); }
static int op_mq_drop(char** a) { return check(mq_unlink(a[0]), "mq_unlink"); }
static int op_mq_send(char** a) {
  const mqd_t queue = mq_open(a[0], O_WRONLY | O_NONBLOCK);
  return queue < 0 ? refused("mq_open") : check(mq_send(queue, "PWN", 3, 0), "mq_send");
}
static int op_mq_count(char** a) {
  struct mq_attr attr = {0};
  const mqd_t queue = mq_open(a[0], O_RDONLY | O_NONBLOCK);
  if (queue < 0 || mq_getattr(queue, &attr) != 0) return refused("mq_open");
  printf("%ld", attr.mq_curmsgs);
  return 0;
}

/* -- the table --------------------------------------------------------------------------------------------------- */

static const struct {
  const char* name;
  int arguments; /* at least */
  int (*run)(char** arguments);
} ops[] = {
    {"create", 1, op_create},           {"append", 1, op_append},
    {"truncate", 1, op_truncate},       {"cut", 1, op_cut},
    {"link", 2, op_link},               {"link-write", 2, op_link_write},
    {"rename", 2, op_rename},           {"exchange", 2, op_exchange},
    {"whiteout", 2, op_whiteout},       {"openat2", 1, op_openat2},
    {"tmpfile", 2, op_tmpfile},         {"map", 1, op_map},
    {"map-then-protect", 1, op_map_then_protect},
    {"reopen", 1, op_reopen},           {"reopen-path", 1, op_reopen_path},
    {"own-mem", 1, op_own_mem},         {"handle", 1, op_handle},
    {"node", 4, op_node},               {"chroot", 2, op_chroot},
    {"flock", 1, op_flock},             {"memfd-exec", 1, op_memfd_exec},
    {"meta", 2, op_meta},               {"meta-fd", 2, op_meta_fd},
    {"meta-open", 2, op_meta_open},     {"meta-opath", 2, op_meta_opath},
    {"chroot-chmod", 2, op_chroot_chmod},
    {"race-chmod", 2, op_race_chmod},   {"thread-fchmod", 2, op_thread_fchmod},
    {"thread-chmod", 2, op_thread_chmod},
    {"fd-write", 1, op_fd_write},       {"fd-openat", 2, op_fd_openat},
    {"fd-truncate", 1, op_fd_truncate}, {"fd-chdir", 2, op_fd_chdir},
    {"fd-unlinkat", 2, op_fd_unlinkat}, {"uring", 2, op_uring},
    {"i386", 2, op_i386},               {"x32", 2, op_x32},
    {"victim", 1, op_victim},           {"signal", 2, op_signal},
    {"thread-signal", 2, op_thread_signal},
    {"queue-signal", 2, op_queue_signal},
    {"pidfd-signal", 2, op_pidfd_signal},
    {"owner-signal", 1, op_owner_signal},
    {"ptrace", 2, op_ptrace},           {"seize", 2, op_seize},
    {"trace-child", 0, op_trace_child}, {"vm-write", 2, op_vm_write},
    {"mem-write", 2, op_mem_write},     {"take-fd", 2, op_take_fd},
    {"limit", 1, op_limit},             {"priority", 1, op_priority},
    {"io-priority", 1, op_io_priority}, {"scheduler", 1, op_scheduler},
    {"affinity", 1, op_affinity},       {"join-mounts", 2, op_join_mounts},
    {"daemon", 1, op_daemon},           {"sibling", 1, op_sibling},
    {"hostname", 1, op_hostname},       {"domainname", 1, op_domainname},
    {"loglevel", 1, op_loglevel},       {"acct", 1, op_acct},
    {"mount-tmpfs", 1, op_mount_tmpfs}, {"mount-bind", 2, op_mount_bind},
    {"umount", 1, op_umount},           {"remount", 2, op_remount},
    {"mount-setattr", 2, op_mount_setattr},
    {"open-tree", 2, op_open_tree},     {"new-mount", 1, op_new_mount},
    {"nothing", 0, op_nothing},         {"add-key", 1, op_add_key},
    {"find-key", 1, op_find_key},       {"drop-key", 1, op_drop_key},
    {"connect", 1, op_connect},         {"datagram", 1, op_datagram},
    {"bind", 1, op_bind},               {"receive-fd", 1, op_receive_fd},
    {"type", 1, op_type},               {"type-high", 1, op_type_high},
    {"type-tty", 0, op_type_tty},       {"on-tty", 2, op_on_tty},
    {"shm", 1, op_shm},                 {"msg", 1, op_msg},
    {"sem", 1, op_sem},                 {"shm-write", 1, op_shm_write},
    {"shm-print", 1, op_shm_print},     {"mq", 1, op_mq},
    {"mq-find", 1, op_mq_find},         {"mq-drop", 1, op_mq_drop},
    {"mq-send", 1, op_mq_send},         {"mq-count", 1, op_mq_count},
};

int main(int argc, char** argv) {
  int at = 1;
  long times = 1;
  op_name = argc > 1 ? argv[1] : "";
  if (argc > 1 && strcmp(argv[1], "in-userns") == 0) {
    if (enter_userns() != 0) return 1;
    at = 2;
  } else if (argc > 2 && strcmp(argv[1], "repeat") == 0) {
    times = number(argv[2]);
    at = 3;
  }
  for (size_t i = 0; at < argc && i < sizeof ops / sizeof *ops; ++i) {
    if (strcmp(argv[at], ops[i].name) != 0) continue;
    op_name = argv[at];
    if (argc - at - 1 < ops[i].arguments) break;
    int result = 0;
    for (long n = 0; n < times; ++n) result = ops[i].run(argv + at + 1);
    return result;
  }
  fprintf(stderr, "attack: unknown or incomplete operation\n");
  return 2;
}

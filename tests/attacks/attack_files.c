/* Files: contents, names, metadata, descriptors; by ordinary calls, by io_uring, and by the numbers of other ABIs. */
#define _GNU_SOURCE
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/fscrypt.h>
#include <linux/fsverity.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

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
  const struct { uint64_t flags, mode, resolve; } how = {O_CREAT | O_WRONLY, 0644, 0};
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
  static const unsigned char acl[] = {2, 0, 0,   0,   1,   0,   7,  0, 255, 255, 255, 255, 4,   0,
                                      7, 0, 255, 255, 255, 255, 32, 0, 7,   0,   255, 255, 255, 255};
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
  if (strcmp(how, "set-version") == 0 || strcmp(how, "set-version-ext4") == 0) {
    int generation = 7;
    return ioctl(fd, how[11] ? _IOW('f', 4, long) : FS_IOC_SETVERSION, &generation); /* ext4 has a number of its own */
  }
  if (strcmp(how, "encryption-policy") == 0) {
    struct fscrypt_policy_v1 policy = {.version = 0, .contents_encryption_mode = 1, .filenames_encryption_mode = 4};
    return ioctl(fd, FS_IOC_SET_ENCRYPTION_POLICY, &policy);
  }
  if (strcmp(how, "verity") == 0) {
    struct fsverity_enable_arg argument = {.version = 1, .hash_algorithm = 1, .block_size = 4096};
    return ioctl(fd, FS_IOC_ENABLE_VERITY, &argument);
  }
  if (strcmp(how, "fchownat-empty-path") == 0) return fchownat(fd, "", (uid_t)-1, getegid(), AT_EMPTY_PATH);
  errno = EINVAL;
  return -1;
}

/* btrfs makes folders by ioctl on a folder that is open for reading; no hook for names sees it. */
static int op_subvolume(char** a) {
  struct {
    int64_t fd;
    char name[4088];
  } what = {0, ""};
  const int fd = open(a[0], O_RDONLY | O_DIRECTORY);
  snprintf(what.name, sizeof what.name, "%s", a[1]);
  return check(ioctl(fd, _IOW(0x94, 14, what), &what), "BTRFS_IOC_SUBVOL_CREATE");
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

#if defined(__x86_64__)
struct foreign {
  const char* name;
  long i386, x32;
  int paths;          /* how many leading arguments are paths */
  long third, fourth; /* the arguments after the first path, or after both */
};

static const struct foreign foreign_calls[] = {
    {"create", 5, 2, 1, O_CREAT | O_WRONLY, 0644},
    {"truncate", 5, 2, 1, O_TRUNC | O_WRONLY, 0},
    {"chmod", 15, 90, 1, 0777, 0},
    {"mkdir", 39, 83, 1, 0755, 0},
    {"unlink", 10, 87, 1, 0, 0},
    {"lchown", 198, 94, 1, -1, -2},
    {"rename", 38, 82, 2, 0, 0},
    {"link", 9, 86, 2, 0, 0},
    {"utime", 30, 132, 1, 0, 0},
    {"kill", 37, 62, 0, 0, 0},
};

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
    long result =
        x32 ? syscall(0x40000000L | f->x32, args[0], args[1], args[2]) : call_i386(f->i386, args[0], args[1], args[2]);
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

const struct op file_ops[] = {
    {"create", 1, op_create},
    {"append", 1, op_append},
    {"truncate", 1, op_truncate},
    {"cut", 1, op_cut},
    {"link", 2, op_link},
    {"link-write", 2, op_link_write},
    {"rename", 2, op_rename},
    {"exchange", 2, op_exchange},
    {"whiteout", 2, op_whiteout},
    {"openat2", 1, op_openat2},
    {"tmpfile", 2, op_tmpfile},
    {"map", 1, op_map},
    {"map-then-protect", 1, op_map_then_protect},
    {"reopen", 1, op_reopen},
    {"reopen-path", 1, op_reopen_path},
    {"own-mem", 1, op_own_mem},
    {"handle", 1, op_handle},
    {"node", 4, op_node},
    {"chroot", 2, op_chroot},
    {"flock", 1, op_flock},
    {"memfd-exec", 1, op_memfd_exec},
    {"subvolume", 2, op_subvolume},
    {"meta", 2, op_meta},
    {"meta-fd", 2, op_meta_fd},
    {"meta-open", 2, op_meta_open},
    {"meta-opath", 2, op_meta_opath},
    {"chroot-chmod", 2, op_chroot_chmod},
    {"race-chmod", 2, op_race_chmod},
    {"thread-fchmod", 2, op_thread_fchmod},
    {"thread-chmod", 2, op_thread_chmod},
    {"fd-write", 1, op_fd_write},
    {"fd-openat", 2, op_fd_openat},
    {"fd-truncate", 1, op_fd_truncate},
    {"fd-chdir", 2, op_fd_chdir},
    {"fd-unlinkat", 2, op_fd_unlinkat},
    {"uring", 2, op_uring},
    {"i386", 2, op_i386},
    {"x32", 2, op_x32},
    {NULL, 0, NULL},
};

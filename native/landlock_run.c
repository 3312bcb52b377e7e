/* landlock-run: restricts itself with Landlock and a system call filter (filter.h) and runs one command. Stand-alone
 * static C11.
 *
 *   landlock-run [--status FD] [--quiet] [--listener FD [--ask-connect] | --refuse-metadata] [--ro PATH]...
 *                [--rw PATH]... -- ARGV...
 *   landlock-run --probe
 *
 * What it promises: the command, and all it ever starts, may read and execute below --ro paths and do everything below
 * --rw paths; no other file may be opened, made, removed, renamed or cut. What it does not: Landlock governs no change
 * of mode, owner, times or attributes at any ABI. Those are refused with --refuse-metadata, or asked of the process at
 * the other end of the socket --listener, which is sent the filter's listener (supervise.h); with neither they are
 * free, and a caller must not call this alone complete. With --ask-connect it is asked about connect() too: before ABI 9
 * there is no right for the sockets in the file system. A path that cannot be opened is a failure: callers leave missing
 * ones out. A path that is no folder gets the rights a file can have.
 *
 * Besides: no_new_privs (first, also for root); every descriptor above 2 close-on-exec, whoever left it open; signals
 * and abstract sockets kept inside where the kernel can (ABI 6); of root's capabilities only those for files and ids
 * are kept.
 *
 * Status descriptor (close-on-exec, so the command cannot write it):
 *   R                 immediately before execve
 *   F<step> <errno>   something failed, also after R. step: privileges, descriptors, abi, ruleset, path, rule,
 *                     capabilities, restrict, filter, exec
 * R then end of file: the command was exec'd. End of file alone: this program was not reached, or was killed.
 *
 * Any failure of its own: one line "landlock-run: ..." on stderr, exit 125, the command not run. On a kernel whose
 * Landlock lacks rights that matter for files (ABI below 5) the line "landlock-run: partial enforcement (older Landlock
 * ABI)" is printed first, unless --quiet (for use inside a runner that covers the rest).
 *
 * --probe restricts itself as far as the kernel goes and prints "landlock: fully enforced" or "landlock: partially
 * enforced (older ABI)" and exits 0 only if that worked. A second line says whether the filter can have a listener:
 * "listener: works", or the reason.
 *
 * Facts: the kernel's Documentation/userspace-api/landlock.rst and include/uapi/linux/landlock.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "filter.h"

/* Kernel interface in one place: headers of Debian 12 are those of 6.1 and end at ABI 2. System call numbers from 424
 * on are the same on every architecture. */
enum {
  nr_close_range = 436,             /* 5.9 */
  nr_landlock_create_ruleset = 444, /* 5.13 */
  nr_landlock_add_rule = 445,       /* 5.13 */
  nr_landlock_restrict_self = 446,  /* 5.13 */
  close_range_cloexec = 1 << 2,     /* 5.11 */
  create_ruleset_version = 1 << 0,  /* 5.13 */
  rule_path_beneath = 1             /* 5.13 */
};

enum {                      /* access rights, by the ABI that brought them */
       fs_execute = 1 << 0, /* 5.13, ABI 1, and so on to fs_make_sym */
       fs_write_file = 1 << 1,
       fs_read_file = 1 << 2,
       fs_read_dir = 1 << 3,
       fs_make_sym = 1 << 12,
       fs_refer = 1 << 13,           /* 5.19, ABI 2 */
       fs_truncate = 1 << 14,        /* 6.2, ABI 3 */
       fs_ioctl_dev = 1 << 15,       /* 6.10, ABI 5 */
       scope_abstract_unix = 1 << 0, /* 6.12, ABI 6 */
       scope_signal = 1 << 1,        /* 6.12, ABI 6 */
       full_abi = 5                  /* the last that adds file rights other than socket paths */
};

struct ruleset_attr {
  uint64_t handled_access_fs;  /* 5.13, ABI 1 */
  uint64_t handled_access_net; /* 6.7, ABI 4; not used */
  uint64_t scoped;             /* 6.12, ABI 6 */
};

struct __attribute__((packed)) path_beneath_attr {
  uint64_t allowed_access;
  int32_t parent_fd;
};

enum { own_failure = 125, first_other_fd = 3 };

static const char older_abi_line[] = "landlock-run: partial enforcement (older Landlock ABI)\n";
static const uint64_t file_rights = fs_execute | fs_write_file | fs_read_file | fs_truncate | fs_ioctl_dev;
static const uint64_t read_rights = fs_execute | fs_read_file | fs_read_dir;

/* What a confined root may still need for files and ids inside the writable folders. Nothing that mounts, traces, loads
 * or configures. */
static const int kept_capabilities[] = {CAP_DAC_OVERRIDE, CAP_CHOWN,  CAP_FOWNER, CAP_FSETID,
                                        CAP_SETUID,       CAP_SETGID, CAP_KILL};

static int status_fd = -1;

static void tell(const char* text, size_t length) {
  while (status_fd >= 0 && write(status_fd, text, length) < 0 && errno == EINTR) {
  }
}

static int fail(const char* step, const char* what, const char* path) {
  const int error = errno;
  char line[64];
  const int n = snprintf(line, sizeof line, "F%s %d", step, error);
  tell(line, (size_t)n);
  fprintf(stderr, "landlock-run: %s%s%s: %s\n", what, path ? " " : "", path ? path : "", strerror(error));
  return own_failure;
}

static int usage(const char* what) {
  fprintf(stderr,
          "landlock-run: %s; usage: landlock-run [--status FD] [--quiet] [--listener FD [--ask-connect] | "
          "--refuse-metadata] [--ro PATH]... [--rw PATH]... -- ARGV...\n",
          what);
  return own_failure;
}

static uint64_t rights_of(int abi) {
  uint64_t rights = (fs_make_sym << 1) - 1;
  if (abi >= 2) rights |= fs_refer;
  if (abi >= 3) rights |= fs_truncate;
  if (abi >= 5) rights |= fs_ioctl_dev;
  return rights;
}

static int create_ruleset(int abi) {
  const struct ruleset_attr attr = {.handled_access_fs = rights_of(abi),
                                    .scoped = abi >= 6 ? scope_abstract_unix | scope_signal : 0};
  const size_t size = abi >= 6 ? sizeof attr : sizeof attr.handled_access_fs;
  return (int)syscall(nr_landlock_create_ruleset, &attr, size, 0);
}

static int landlock_abi(void) { return (int)syscall(nr_landlock_create_ruleset, NULL, 0, create_ruleset_version); }

/* The step that failed, or null. */
static const char* allow(int ruleset, const char* path, uint64_t rights) {
  const int fd = open(path, O_PATH | O_CLOEXEC);
  struct stat info;
  if (fd < 0) return "path";
  if (fstat(fd, &info) != 0) {
    close(fd);
    return "path";
  }
  const struct path_beneath_attr rule = {.allowed_access = S_ISDIR(info.st_mode) ? rights : rights & file_rights,
                                         .parent_fd = fd};
  const long rc = syscall(nr_landlock_add_rule, ruleset, rule_path_beneath, &rule, 0);
  const int error = errno;
  close(fd);
  errno = error;
  return rc == 0 ? NULL : "rule";
}

static bool kept(int capability) {
  for (size_t i = 0; i < sizeof kept_capabilities / sizeof *kept_capabilities; ++i) {
    if (kept_capabilities[i] == capability) return true;
  }
  return false;
}

/* Bounding set first (dropping from it needs CAP_SETPCAP), then the others. Without that capability the bounding set
 * cannot change, and need not: under no_new_privs no exec can gain what is not permitted any more. */
static int drop_capabilities(void) {
  for (int capability = 0; capability <= 63; ++capability) {
    if (kept(capability) || prctl(PR_CAPBSET_READ, capability, 0, 0, 0) != 1) continue;
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 && errno != EPERM) return -1;
  }
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 && errno != EINVAL) return -1;
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  struct __user_cap_data_struct data[2];
  if (syscall(SYS_capget, &header, data) != 0) return -1;
  uint32_t mask[2] = {0, 0};
  for (int capability = 0; capability <= 63; ++capability) {
    if (kept(capability)) mask[capability / 32] |= 1u << (capability % 32);
  }
  for (int i = 0; i < 2; ++i) {
    data[i].permitted &= mask[i];
    data[i].effective &= mask[i];
    data[i].inheritable &= mask[i];
  }
  return (int)syscall(SYS_capset, &header, data);
}

/* Close-on-exec rather than closed: the status descriptor is one of them. */
static int protect_descriptors(void) {
  if (syscall(nr_close_range, first_other_fd, ~0u, close_range_cloexec) == 0) return 0;
  const long limit = sysconf(_SC_OPEN_MAX);
  if (limit < 0) return -1;
  for (int fd = first_other_fd; fd < limit; ++fd) {
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 && errno != EBADF) return -1;
  }
  return 0;
}

/* Whether a process may look into one it started, as call-init must: not where ptrace is for administrators alone. 0, or
 * an error number. */
static int look_into_child(void) {
  static const char sample = 'x';
  char path[32], read = 0;
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  if (child < 0) return errno;
  snprintf(path, sizeof path, "/proc/%d/mem", (int)child);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  int error = fd < 0 ? errno : 0;
  if (fd >= 0 && pread(fd, &read, 1, (off_t)(uintptr_t)&sample) != 1) error = errno;
  if (fd >= 0) close(fd);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  return error ? error : read == sample ? 0 : EIO;
}

static int probe(void) {
  const int blind = look_into_child();
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail("privileges", "cannot set no_new_privs", NULL);
  const int abi = landlock_abi();
  if (abi < 1) return fail("abi", "the kernel has no Landlock, or it is switched off", NULL);
  const int ruleset = create_ruleset(abi);
  if (ruleset < 0) return fail("ruleset", "cannot make a ruleset", NULL);
  if (syscall(nr_landlock_restrict_self, ruleset, 0) != 0) return fail("restrict", "cannot restrict itself", NULL);
  if (open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC) >= 0 || errno != EACCES) {
    return fail("restrict", "the kernel accepted a ruleset and does not enforce it", NULL);
  }
  puts(abi >= full_abi ? "landlock: fully enforced" : "landlock: partially enforced (older ABI)");
  int listener = -1;
  if (blind) {
    printf("listener: processes cannot be looked into: %s\n", strerror(blind));
  } else {
    const bool listens = install_filter(metadata_free, &listener, true) == 0;
    printf("listener: %s\n", listens ? "works" : strerror(errno));
  }
  return fflush(stdout) == 0 ? 0 : own_failure;
}

static int send_listener(int socket, int listener) {
  char byte = 'L';
  union {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
  } control;
  memset(&control, 0, sizeof control);
  struct iovec data = {&byte, 1};
  const struct msghdr message = {
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  control.header.cmsg_level = SOL_SOCKET;
  control.header.cmsg_type = SCM_RIGHTS;
  control.header.cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(&control.header), &listener, sizeof listener);
  return sendmsg(socket, &message, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

static int open_descriptor(const char* text) {
  char* end = NULL;
  const long fd = strtol(text, &end, 10);
  return end == text || *end || fd < first_other_fd || fd > 1 << 20 || fcntl((int)fd, F_GETFD) < 0 ? -1 : (int)fd;
}

static bool lone_option(const char* option) {
  return strcmp(option, "--quiet") == 0 || strcmp(option, "--refuse-metadata") == 0 ||
         strcmp(option, "--ask-connect") == 0;
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--probe") == 0) return probe();

  /* The arguments are looked at before anything is done, so that the status descriptor is known to every failure. */
  bool quiet = false, refuse_metadata = false, ask_connect = false;
  int command = 1, socket = -1;
  while (command < argc && strcmp(argv[command], "--") != 0) {
    const char* option = argv[command];
    if (lone_option(option)) {
      quiet |= strcmp(option, "--quiet") == 0;
      refuse_metadata |= strcmp(option, "--refuse-metadata") == 0;
      ask_connect |= strcmp(option, "--ask-connect") == 0;
      command += 1;
      continue;
    }
    if (command + 1 >= argc) return usage("missing value or --");
    const char* value = argv[command + 1];
    if (strcmp(option, "--status") == 0) {
      status_fd = open_descriptor(value);
      if (status_fd < 0) return usage("--status needs an open descriptor above 2");
    } else if (strcmp(option, "--listener") == 0) {
      socket = open_descriptor(value);
      if (socket < 0) return usage("--listener needs an open descriptor above 2");
    } else if (strcmp(option, "--ro") != 0 && strcmp(option, "--rw") != 0) {
      return usage("unknown option");
    }
    command += 2;
  }
  if (command + 1 >= argc) return usage("no command after --");

  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail("privileges", "cannot set no_new_privs", NULL);
  if (protect_descriptors() != 0) return fail("descriptors", "cannot mark descriptors close-on-exec", NULL);
  const int abi = landlock_abi();
  if (abi < 1) return fail("abi", "the kernel has no Landlock, or it is switched off", NULL);
  if (abi < full_abi && !quiet && write(2, older_abi_line, sizeof older_abi_line - 1) < 0) {
    /* Nobody reads stderr: nothing to be told. */
  }
  const int ruleset = create_ruleset(abi);
  if (ruleset < 0) return fail("ruleset", "cannot make a ruleset", NULL);
  const uint64_t all = rights_of(abi);
  for (int i = 1; i < command; ++i) {
    if (lone_option(argv[i])) continue;
    const char *option = argv[i], *value = argv[++i];
    if (strcmp(option, "--ro") != 0 && strcmp(option, "--rw") != 0) continue;
    const char* step = allow(ruleset, value, strcmp(option, "--rw") == 0 ? all : all & read_rights);
    if (step) return fail(step, "cannot allow", value);
  }
  if (drop_capabilities() != 0) return fail("capabilities", "cannot drop capabilities", NULL);
  if (syscall(nr_landlock_restrict_self, ruleset, 0) != 0) return fail("restrict", "cannot restrict itself", NULL);
  int listener = -1;
  if (install_filter(refuse_metadata ? metadata_refused : metadata_free, socket >= 0 ? &listener : NULL, ask_connect) !=
      0)
    return fail("filter", "cannot filter system calls", NULL);
  if (socket >= 0 && send_listener(socket, listener) != 0) return fail("filter", "cannot hand over the listener", NULL);

  tell("R", 1);
  char** child = argv + command + 1;
  if (strchr(child[0], '/')) {
    execv(child[0], child);
  } else {
    execvp(child[0], child);
  }
  return fail("exec", "cannot run", child[0]);
}

/* call-init: the reaper of one command. Started by the agent for every command, confined or not; includes nothing of
 * ours.
 *
 *   call-init --control FD --status FD [--pass FD]... [--user-namespace] [--listener FD [--root|--keep|--absent|--open|
 *             --own|--quiet|--socket PATH]...] -- ARGV...
 *
 * What it is: a single-threaded, unconfined process that runs ARGV as its direct child, is the child subreaper of
 * whatever that starts (daemons included), and ends all of it when its control pipe says so. It is no sandbox and has
 * no opinion on what ARGV does. Each call has its own, so two calls can never be mixed up.
 *
 * The child gets: 0, 1, 2 and the passed descriptors as they are, nothing else; the environment and the working
 * directory call-init was started with; its own session and group (no controlling terminal); default signals and an
 * empty mask; SIGKILL if call-init itself is killed. ARGV[0] with a slash is run as it is, else looked up in PATH.
 *
 * --user-namespace: ARGV starts in a user namespace of its own that has the ids of ours, with every capability there and
 * none outside. A sandbox runner that root starts can thus leave root its rights over files of every owner. Needs
 * CAP_SETUID and CAP_SETGID.
 *
 * --listener: the end of a socket on which a launcher further down sends the listener of its filter; from then on
 * call-init answers it (supervise.h). --root and so on: the lists of its policy.
 *
 * Control (the agent holds the only write end):
 *   'T'          SIGTERM to every descendant. A process with a child in a deeper pid namespace (a sandbox runner) is
 *                left out: its death would take those inside down before they can act on theirs; it ends when they do.
 *   end of file  the agent said so, or died in any way: SIGKILL to every descendant, SIGSTOP first so that no fork
 *                outruns it, until waitpid() says that none is left.
 * Other bytes are ignored.
 *
 * Status, one record a line:
 *   F <step> <errno>  ARGV could not be started; step is one of subreaper, signals, sockets, fork, ids,
 *                     exec. Nothing follows.
 *   S                 the child has been exec'd.
 *   L                 the listener came: what is denied is told.
 *   D <what> <path>   a change that the policy denies and the user could have made. At most 64, each once; control
 *                     characters are '?', the end of a very long path is cut.
 *   E <code>          the direct child exited. Said at once: its descendants are neither waited for nor touched until
 *                     the control pipe closes.
 *   K <signal>        the direct child was killed by a signal.
 *   P <errno>         a descendant could not be signalled (another user's, such as one behind sudo) and is left behind.
 *   Z <n>             nothing is left (but for what P says). n: descendants that were still running after the direct
 *                     child had ended by itself, and were killed. Last record; end of file follows. With no descendant
 *                     left after the direct child has ended, Z comes without waiting for the control pipe.
 *
 * Descendants are found through /proc and signalled through pidfds whose start time was compared, so that a reused pid
 * is never hit. Where /proc is missing, of another pid namespace, or hides processes, direct children are found by
 * asking waitid() for every possible pid; the orphans of a killed one become direct children, so the loop still reaches
 * them all.
 *
 * Exit: 0; 125 with one line on stderr when called wrongly; 127 after F. Facts: prctl(2), pidfd_open(2), proc(5),
 * waitid(2), user_namespaces(7).
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "connect.h"
#include "supervise.h"

/* The same numbers on every architecture; in the headers of Debian 12, but not of older ones. */
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424 /* Linux 5.1 */
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 /* Linux 5.3 */
#endif
#ifndef SYS_close_range
#define SYS_close_range 436 /* Linux 5.9 */
#endif

enum {
  max_pass = 16,
  max_denials = 64, /* with their paths they fit into the pipe, whoever reads it when */
  max_told_path = 400,
  first_own_fd = 3,
  usage_exit = 125,
  settle_ms = 30,       /* a namespace whose runner has just ended is still being torn down by the kernel */
  max_stop_rounds = 32, /* a fork bomb is stopped when a round finds nobody new */
  hidden_after = 3,     /* sweeps that find nobody, while waitpid() says otherwise, before every pid is tried */
  refused_after = 5,    /* sweeps that find only processes that may not be signalled, before they are left behind */
  max_wait_ms = 100,
  reap_every = 4096,
  pid_limit = 4 * 1024 * 1024, /* PID_MAX_LIMIT of the kernel */
  exiting_flag = 0x4           /* PF_EXITING in field 9 of /proc/PID/stat */
};

struct process {
  pid_t pid, parent;
  unsigned long long start;
  unsigned flags;
  char state;
  bool descendant;
};

struct list {
  struct process* items;
  size_t count, room;
};

static int status_fd = -1;
static int signal_fd = -1;
static DIR* proc_dir; /* null: /proc is of no use */
static struct supervisor supervisor = {.socket = -1, .listener = -1};
static pid_t child;
static bool child_ended;

static void say(const char* kind, int a, bool with_number) {
  char line[64];
  const int n =
      with_number ? snprintf(line, sizeof line, "%s %d\n", kind, a) : snprintf(line, sizeof line, "%s\n", kind);
  while (write(status_fd, line, (size_t)n) < 0 && errno == EINTR) {
  }
}

static void tell_listening(void) { say("L", 0, false); }

static void tell_denied(const char* what, const char* path) {
  static char told[max_denials][32 + max_told_path];
  static int count;
  char line[32 + max_told_path];
  int n = snprintf(line, sizeof line, "D %s %.*s", what, max_told_path, path);
  for (int i = 0; i < n; ++i) {
    if ((unsigned char)line[i] < ' ' || line[i] == 0x7f) line[i] = '?';
  }
  for (int i = 0; i < count; ++i) {
    if (strcmp(told[i], line) == 0) return;
  }
  if (count == max_denials) return;
  strcpy(told[count++], line);
  line[n++] = '\n';
  while (write(status_fd, line, (size_t)n) < 0 && errno == EINTR) {
  }
}

static int usage(const char* what) {
  fprintf(stderr,
          "call-init: %s; usage: call-init --control FD --status FD [--pass FD]... [--user-namespace] [--listener FD] "
          "-- ARGV...\n",
          what);
  return usage_exit;
}

static int fail_start(const char* step, int error) {
  char kind[32];
  snprintf(kind, sizeof kind, "F %s", step);
  say(kind, error, true);
  return 127;
}

/* -- descendants ------------------------------------------------------------------------------------------------------
 */

static bool list_add(struct list* list, const struct process* item) {
  if (list->count == list->room) {
    const size_t room = list->room ? 2 * list->room : 256;
    struct process* items = realloc(list->items, room * sizeof *items);
    if (!items) return false;
    list->items = items;
    list->room = room;
  }
  list->items[list->count++] = *item;
  return true;
}

static int by_pid(const void* a, const void* b) {
  const pid_t x = ((const struct process*)a)->pid, y = ((const struct process*)b)->pid;
  return (x > y) - (x < y);
}

static struct process* list_find(const struct list* list, pid_t pid) {
  struct process key = {.pid = pid};
  return list->count ? bsearch(&key, list->items, list->count, sizeof key, by_pid) : NULL;
}

static bool same_process(const struct list* list, const struct process* item) {
  const struct process* found = list_find(list, item->pid);
  return found && found->start == item->start;
}

/* Reads at most size - 1 bytes of a file in /proc/PID. */
static bool read_proc(pid_t pid, const char* name, char* text, size_t size) {
  char path[48];
  snprintf(path, sizeof path, "%d/%s", (int)pid, name);
  const int fd = openat(dirfd(proc_dir), path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t n = read(fd, text, size - 1);
  close(fd);
  if (n <= 0) return false;
  text[n] = '\0';
  return true;
}

static bool read_stat(pid_t pid, struct process* out) {
  char text[1024];
  if (!read_proc(pid, "stat", text, sizeof text)) return false;
  const char* after = strrchr(text, ')'); /* the name may hold anything, parentheses too */
  if (!after) return false;
  int parent = 0;
  memset(out, 0, sizeof *out);
  if (sscanf(after + 1, " %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &out->state,
             &parent, &out->flags, &out->start) != 4)
    return false;
  out->pid = pid;
  out->parent = parent;
  return true;
}

/* How many pid namespaces deep a process is; 0 when unknown. */
static int namespace_depth(pid_t pid) {
  char text[4096];
  if (!read_proc(pid, "status", text, sizeof text)) return 0;
  const char* line = strstr(text, "\nNSpid:");
  int depth = 0;
  if (!line) return 0;
  for (const char* p = line + 7; *p && *p != '\n'; ++p) depth += p[0] == '\t';
  return depth;
}

/* All living descendants, sorted by pid. False when /proc cannot be used. */
static bool collect(struct list* found) {
  static struct list all;
  found->count = all.count = 0;
  if (!proc_dir) return false;
  rewinddir(proc_dir);
  for (const struct dirent* entry; (entry = readdir(proc_dir));) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    struct process item;
    if (read_stat((pid_t)strtol(entry->d_name, NULL, 10), &item) && !list_add(&all, &item)) return false;
  }
  if (all.count) qsort(all.items, all.count, sizeof *all.items, by_pid);
  const pid_t self = getpid();
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < all.count; ++i) {
      struct process* item = &all.items[i];
      if (item->descendant || item->pid == self) continue;
      const struct process* parent = list_find(&all, item->parent);
      if (item->parent == self || (parent && parent->descendant)) more = item->descendant = true;
    }
  }
  for (size_t i = 0; i < all.count; ++i) {
    const struct process* item = &all.items[i];
    if (item->descendant && item->state != 'Z' && item->state != 'X' && !list_add(found, item)) return false;
  }
  return true;
}

/* 0, or the error number. A process that is gone, or is another one by now, is no error. */
static int signal_process(const struct process* item, int number) {
  const int fd = (int)syscall(SYS_pidfd_open, item->pid, 0);
  if (fd < 0 && errno == ESRCH) return 0;
  struct process now;
  int error = 0;
  if (read_stat(item->pid, &now) && now.start == item->start) {
    const long rc = fd >= 0 ? syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) : kill(item->pid, number);
    if (rc < 0 && errno != ESRCH) error = errno;
  }
  if (fd >= 0) close(fd);
  return error;
}

/* Whether a descendant has this socket open. */
static bool held_by_descendant(unsigned long inode) {
  static struct list found;
  char wanted[40], path[48], link[64];
  const int length = snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
  if (!collect(&found)) return false;
  for (size_t i = 0; i < found.count; ++i) {
    snprintf(path, sizeof path, "%d/fd", (int)found.items[i].pid);
    const int fd = openat(dirfd(proc_dir), path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* dir = fd < 0 ? NULL : fdopendir(fd);
    bool held = false;
    for (const struct dirent* entry; dir && !held && (entry = readdir(dir));)
      held = readlinkat(dirfd(dir), entry->d_name, link, sizeof link) == length && memcmp(link, wanted, length) == 0;
    if (dir) {
      closedir(dir);
    } else if (fd >= 0) {
      close(fd);
    }
    if (held) return true;
  }
  return false;
}

static void terminate_all(void) {
  static struct list found;
  if (!collect(&found)) {
    if (!child_ended) kill(-child, SIGTERM);
    return;
  }
  for (size_t i = 0; i < found.count; ++i) {
    const struct process* item = &found.items[i];
    bool runner = false;
    for (size_t j = 0; j < found.count && !runner; ++j) {
      if (found.items[j].parent == item->pid) runner = namespace_depth(found.items[j].pid) > namespace_depth(item->pid);
    }
    if (!runner) signal_process(item, SIGTERM);
  }
}

struct sweep {
  int signalled, refused, error;
};

/* Stops everybody, round by round until nobody new turns up, then kills everybody. Adds those not seen before, and not
 * already on their way out, to *stragglers. */
static struct sweep kill_tree(int* stragglers) {
  static struct list found, before, counted;
  struct sweep result = {0, 0, 0};
  before.count = 0;
  for (int round = 0; round < max_stop_rounds; ++round) {
    if (!collect(&found)) return result;
    bool anyone_new = false;
    for (size_t i = 0; i < found.count; ++i) {
      if (same_process(&before, &found.items[i])) continue;
      anyone_new = true;
      signal_process(&found.items[i], SIGSTOP);
    }
    if (!anyone_new) break;
    const struct list swap = before;
    before = found;
    found = swap;
  }
  if (!collect(&found)) return result;
  for (size_t i = 0; i < found.count; ++i) {
    const struct process* item = &found.items[i];
    const int error = signal_process(item, SIGKILL);
    if (error) {
      result.error = error;
      ++result.refused;
      continue;
    }
    ++result.signalled;
    if (!(item->flags & exiting_flag) && !same_process(&counted, item)) {
      ++*stragglers;
      if (list_add(&counted, item)) qsort(counted.items, counted.count, sizeof *counted.items, by_pid);
    }
  }
  return result;
}

/* -- the life of a call -----------------------------------------------------------------------------------------------
 */

/* True when no child is left. */
static bool reap(void) {
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG | __WALL);
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) return true;
    if (pid == 0) return false;
    if (pid != child || child_ended) continue;
    child_ended = true;
    if (WIFSIGNALED(status)) {
      say("K", WTERMSIG(status), true);
    } else {
      say("E", WEXITSTATUS(status), true);
    }
  }
}

/* Without /proc: every pid that waitid() knows as a child of ours, beginning with those given out after our own. */
static struct sweep kill_children_by_pid(void) {
  struct sweep result = {0, 0, 0};
  const pid_t self = getpid();
  for (pid_t n = 1; n < pid_limit; ++n) {
    if (n % reap_every == 0 && reap()) break;
    const pid_t pid = (self + n) % pid_limit;
    siginfo_t info;
    info.si_pid = 0;
    if (pid < 2 || waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0 || info.si_pid != 0)
      continue;
    if (kill(pid, SIGKILL) == 0) {
      ++result.signalled;
    } else {
      result.error = errno;
      ++result.refused;
    }
  }
  return result;
}

/* Waits for a child to change state, at most `ms`; true when no child is left. */
static bool reap_within(int ms) {
  if (reap()) return true;
  struct pollfd wait = {.fd = signal_fd, .events = POLLIN};
  struct signalfd_siginfo drop;
  poll(&wait, 1, ms);
  while (read(signal_fd, &drop, sizeof drop) > 0) {
  }
  return reap();
}

static long now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void end_everything(void) {
  const bool by_itself = child_ended;
  int stragglers = 0;
  if (by_itself) {
    for (const long end = now_ms() + settle_ms; now_ms() < end;) {
      if (reap_within((int)(end - now_ms()) + 1)) {
        say("Z", 0, true);
        return;
      }
    }
  }
  setpriority(PRIO_PROCESS, 0, -20); /* against a fork bomb, where we may */
  int nobody = 0, only_refused = 0;
  for (int wait = 2; !reap(); wait = wait * 2 > max_wait_ms ? max_wait_ms : wait * 2) {
    struct sweep sweep = kill_tree(&stragglers);
    if (!sweep.signalled && !sweep.refused && (!proc_dir || ++nobody >= hidden_after)) {
      if (!proc_dir && !child_ended) kill(-child, SIGKILL);
      sweep = kill_children_by_pid();
      stragglers += nobody >= hidden_after || !proc_dir ? sweep.signalled : 0;
      nobody = 0;
    }
    only_refused = sweep.refused && !sweep.signalled ? only_refused + 1 : 0;
    if (only_refused >= refused_after) {
      say("P", sweep.error, true);
      break;
    }
    if (reap_within(wait)) break;
  }
  say("Z", by_itself ? stragglers : 0, true);
}

static void watch(int control) {
  for (;;) {
    if (reap() && child_ended) {
      say("Z", 0, true);
      return;
    }
    struct pollfd wait[3] = {{.fd = signal_fd, .events = POLLIN},
                             {.fd = control, .events = POLLIN},
                             {.fd = supervise_fd(&supervisor), .events = POLLIN}};
    if (poll(wait, 3, -1) < 0) continue;
    if (wait[2].revents) supervise(&supervisor, wait[2].revents);
    struct signalfd_siginfo drop;
    while (read(signal_fd, &drop, sizeof drop) > 0) {
    }
    if (!wait[1].revents) continue;
    char bytes[64];
    const ssize_t n = read(control, bytes, sizeof bytes);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) {
      reap(); /* a child that ended in the same instant did end by itself */
      end_everything();
      return;
    }
    if (memchr(bytes, 'T', (size_t)n)) terminate_all();
  }
}

/* In the child, which may share our memory until it execs: system calls only. Returns why it could not. */
static int become(char** argv, pid_t parent) {
  struct sigaction standard;
  memset(&standard, 0, sizeof standard);
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) {
    if (number != SIGKILL && number != SIGSTOP) sigaction(number, &standard, NULL);
  }
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) return ESRCH;
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (strchr(argv[0], '/')) {
    execv(argv[0], argv);
  } else {
    execvp(argv[0], argv);
  }
  return errno;
}

/* Gives the user namespace of `pid` the ids of ours under their own numbers. `name`: "uid_map" or "gid_map". */
static bool map_ids(pid_t pid, const char* name) {
  char ours[4096], theirs[4096], path[48];
  size_t length = 0;
  if (!proc_dir || !read_proc(getpid(), name, ours, sizeof ours)) return false;
  for (char* line = ours; *line;) {
    unsigned first, above, count;
    int end = 0;
    if (sscanf(line, "%u %u %u%n", &first, &above, &count, &end) != 3) break;
    const int n = snprintf(theirs + length, sizeof theirs - length, "%u %u %u\n", first, first, count);
    if (n < 0 || length + (size_t)n >= sizeof theirs) return false;
    length += (size_t)n;
    line += end;
  }
  snprintf(path, sizeof path, "%d/%s", (int)pid, name);
  const int fd = openat(dirfd(proc_dir), path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = write(fd, theirs, length) == (ssize_t)length;
  const int error = errno;
  close(fd);
  errno = error;
  return written;
}

/* Where a child of vfork() would hold us until its exec, one that waits for its ids tells us through a socket: the error
 * of its exec, or nothing when that closed the socket. */
static int start_in_user_namespace(char** argv) {
  int ends[2], error = 0;
  char go = 0;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return fail_start("fork", errno);
  const pid_t self = getpid();
  child = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
  if (child == 0) {
    close(ends[0]);
    if (read(ends[1], &go, 1) == 1) {
      error = become(argv, self);
      if (write(ends[1], &error, sizeof error) < 0) _exit(126);
    }
    _exit(127);
  }
  error = errno;
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return fail_start("fork", error);
  }
  errno = ENOSYS; /* no /proc */
  const char* step = "ids";
  error = map_ids(child, "uid_map") && map_ids(child, "gid_map") ? 0 : errno;
  if (!error) {
    step = "exec";
    if (write(ends[0], &go, 1) != 1 || read(ends[0], &error, sizeof error) < 0) error = errno;
  }
  close(ends[0]);
  if (error) {
    waitpid(child, NULL, 0);
    return fail_start(step, error);
  }
  say("S", 0, false);
  return 0;
}

static int start(char** argv) {
  static volatile int error;
  const pid_t self = getpid();
  child = vfork();
  if (child == 0) {
    error = become(argv, self);
    _exit(127);
  }
  if (child < 0) return fail_start("fork", errno);
  if (error) {
    waitpid(child, NULL, 0);
    return fail_start("exec", error);
  }
  say("S", 0, false);
  return 0;
}

/* -- start-up ---------------------------------------------------------------------------------------------------------
 */

static int number_of(const char* text) {
  char* end = NULL;
  errno = 0;
  const long value = text ? strtol(text, &end, 10) : -1;
  return !end || end == text || *end || errno || value < first_own_fd || value > 1 << 20 ? -1 : (int)value;
}

static int by_value(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }

/* Everything but 0, 1, 2 and `keep` (sorted) is closed, whoever left it open. */
static void close_others(const int* keep, int count) {
  unsigned first = first_own_fd;
  bool done = true;
  for (int i = 0; i <= count && done; ++i) {
    const unsigned last = i < count ? (unsigned)keep[i] - 1 : ~0u;
    if (first <= last && syscall(SYS_close_range, first, last, 0) != 0) done = false;
    if (i < count) first = (unsigned)keep[i] + 1;
  }
  if (done) return;
  DIR* dir = opendir("/proc/self/fd");
  const long limit = sysconf(_SC_OPEN_MAX);
  for (int fd = first_own_fd; !dir && fd < (limit > 0 ? limit : 1024); ++fd) {
    if (!bsearch(&fd, keep, (size_t)count, sizeof fd, by_value)) close(fd);
  }
  if (!dir) return;
  for (const struct dirent* entry; (entry = readdir(dir));) {
    const int fd = number_of(entry->d_name);
    if (fd >= 0 && fd != dirfd(dir) && !bsearch(&fd, keep, (size_t)count, sizeof fd, by_value)) close(fd);
  }
  closedir(dir);
}

static void open_proc(void) {
  char self[16], expected[16];
  const ssize_t n = readlink("/proc/self", self, sizeof self - 1);
  snprintf(expected, sizeof expected, "%d", (int)getpid());
  if (n <= 0) return;
  self[n] = '\0';
  if (strcmp(self, expected) == 0)
    proc_dir = opendir("/proc"); /* else: of another pid namespace, its pids are not ours */
}

/* The list of the supervisor that `option` adds to, or null. */
static struct path_list* list_of(const char* option) {
  if (strcmp(option, "--root") == 0) return &supervisor.roots;
  if (strcmp(option, "--keep") == 0) return &supervisor.kept;
  if (strcmp(option, "--absent") == 0) return &supervisor.absent;
  if (strcmp(option, "--open") == 0) return &supervisor.open;
  if (strcmp(option, "--own") == 0) return &supervisor.own;
  if (strcmp(option, "--quiet") == 0) return &supervisor.quiet;
  if (strcmp(option, "--socket") == 0) return &supervisor.sockets;
  return NULL;
}

int main(int argc, char** argv) {
  int keep[max_pass + 3], kept = 0, pass[max_pass], passed = 0, control = -1, i = 1;
  bool user_namespace = false;
  for (; i < argc && strcmp(argv[i], "--") != 0; i += 2) {
    struct path_list* list = list_of(argv[i]);
    if (list) {
      if (!list->items) list->items = calloc((size_t)argc, sizeof *list->items);
      if (!list->items || i + 1 >= argc) return usage("a path is missing");
      list->items[list->count++] = argv[i + 1];
      continue;
    }
    if (strcmp(argv[i], "--user-namespace") == 0) {
      user_namespace = true;
      --i;
      continue;
    }
    const int fd = number_of(argv[i + 1]);
    if (fd < 0 || fcntl(fd, F_GETFD) < 0) return usage("an option without an open descriptor above 2");
    if (strcmp(argv[i], "--control") == 0 && control < 0) {
      control = fd;
    } else if (strcmp(argv[i], "--status") == 0 && status_fd < 0) {
      status_fd = fd;
    } else if (strcmp(argv[i], "--listener") == 0 && supervisor.socket < 0) {
      supervisor.socket = fd;
    } else if (strcmp(argv[i], "--pass") == 0 && passed < max_pass) {
      pass[passed++] = fd;
    } else {
      return usage("unknown or repeated option");
    }
    if (bsearch(&fd, keep, (size_t)kept, sizeof fd, by_value)) return usage("a descriptor given twice");
    keep[kept++] = fd;
    qsort(keep, (size_t)kept, sizeof *keep, by_value);
  }
  if (control < 0 || status_fd < 0 || i + 1 >= argc) return usage("missing option or ARGV");
  char** command = argv + i + 1;

  close_others(keep, kept);
  for (int fd = 0; fd < first_own_fd; ++fd) {
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", O_RDWR);
  }
  fcntl(control, F_SETFD, FD_CLOEXEC);
  fcntl(status_fd, F_SETFD, FD_CLOEXEC);
  if (supervisor.socket >= 0) fcntl(supervisor.socket, F_SETFD, FD_CLOEXEC);
  for (int k = 0; k < passed; ++k) fcntl(pass[k], F_SETFD, 0);

  setsid(); /* fails for a group leader (run by hand from a shell); the child always gets its own */
  sigset_t all, child_signal;
  sigfillset(&all);
  sigemptyset(&child_signal);
  sigaddset(&child_signal, SIGCHLD);
  signal(SIGCHLD, SIG_DFL); /* ignored, it would reap behind our back */
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return fail_start("subreaper", errno);
  if (sigprocmask(SIG_SETMASK, &all, NULL) != 0) return fail_start("signals", errno);
  signal_fd = signalfd(-1, &child_signal, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signal_fd < 0) return fail_start("signals", errno);
  open_proc();
  supervisor.proc = proc_dir;
  supervisor.listening = tell_listening;
  supervisor.denied = tell_denied;
  supervisor.ours = held_by_descendant;
  if (!remember_sockets(&supervisor.sockets)) return fail_start("sockets", errno);

  const int failed = user_namespace ? start_in_user_namespace(command) : start(command);
  if (failed) return failed;

  /* Whoever reads the child's pipes waits for their last writer, which must not be us. */
  for (int k = 0; k < passed; ++k) close(pass[k]);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < first_own_fd; ++fd) {
    if (null < 0 || dup2(null, fd) < 0) close(fd);
  }
  if (null >= 0) close(null);
  watch(control);
  return 0;
}

/* What is no file: processes, the kernel's own interfaces, sockets, terminals, IPC. */
#define _GNU_SOURCE
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

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

static int poke(pid_t pid, const char* address) {
  waitpid(pid, NULL, __WALL);
  long word = 0;
  memcpy(&word, "PWNED\0\0", sizeof word);
  const long rc = ptrace(PTRACE_POKEDATA, pid, (void*)number(address), (void*)word);
  ptrace(PTRACE_DETACH, pid, NULL, NULL);
  return check(rc, "poke");
}

static int op_ptrace(char** a) {
  const pid_t pid = (pid_t)number(a[0]);
  if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) != 0) return refused("attach");
  return poke(pid, a[1]);
}

static int op_seize(char** a) {
  const pid_t pid = (pid_t)number(a[0]);
  if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0) return refused("seize");
  if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) != 0) return refused("interrupt");
  return poke(pid, a[1]);
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
  struct msghdr message = {
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
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

/* Reading is enough to be let open it. */
static int op_terminal_settings(char** a) {
  const int fd = open(a[0], O_RDONLY | O_NOCTTY);
  struct termios settings;
  if (fd < 0) return refused("open");
  if (tcgetattr(fd, &settings) != 0) return refused("tcgetattr");
  settings.c_lflag ^= ISIG;
  return check(tcsetattr(fd, TCSANOW, &settings), "tcsetattr");
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

/* For the host: the rest of the arguments under a filter that answers Landlock's three calls like a container that
 * does not know them. */
static int op_without_landlock(char** a) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 444, 0, 2),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 446, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog filter = {.len = sizeof code / sizeof *code, .filter = code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return refused("no_new_privs");
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) return refused("filter");
  execvp(a[0], a);
  return refused("exec");
}

const struct op host_ops[] = {
    {"terminal-settings", 1, op_terminal_settings},
    {"without-landlock", 1, op_without_landlock},
    {"victim", 1, op_victim},
    {"signal", 2, op_signal},
    {"thread-signal", 2, op_thread_signal},
    {"queue-signal", 2, op_queue_signal},
    {"pidfd-signal", 2, op_pidfd_signal},
    {"owner-signal", 1, op_owner_signal},
    {"ptrace", 2, op_ptrace},
    {"seize", 2, op_seize},
    {"trace-child", 0, op_trace_child},
    {"vm-write", 2, op_vm_write},
    {"mem-write", 2, op_mem_write},
    {"take-fd", 2, op_take_fd},
    {"limit", 1, op_limit},
    {"priority", 1, op_priority},
    {"io-priority", 1, op_io_priority},
    {"scheduler", 1, op_scheduler},
    {"affinity", 1, op_affinity},
    {"join-mounts", 2, op_join_mounts},
    {"daemon", 1, op_daemon},
    {"sibling", 1, op_sibling},
    {"hostname", 1, op_hostname},
    {"domainname", 1, op_domainname},
    {"loglevel", 1, op_loglevel},
    {"acct", 1, op_acct},
    {"mount-tmpfs", 1, op_mount_tmpfs},
    {"mount-bind", 2, op_mount_bind},
    {"umount", 1, op_umount},
    {"remount", 2, op_remount},
    {"mount-setattr", 2, op_mount_setattr},
    {"open-tree", 2, op_open_tree},
    {"new-mount", 1, op_new_mount},
    {"nothing", 0, op_nothing},
    {"add-key", 1, op_add_key},
    {"find-key", 1, op_find_key},
    {"drop-key", 1, op_drop_key},
    {"connect", 1, op_connect},
    {"datagram", 1, op_datagram},
    {"bind", 1, op_bind},
    {"receive-fd", 1, op_receive_fd},
    {"type", 1, op_type},
    {"type-high", 1, op_type_high},
    {"type-tty", 0, op_type_tty},
    {"on-tty", 2, op_on_tty},
    {"shm", 1, op_shm},
    {"msg", 1, op_msg},
    {"sem", 1, op_sem},
    {"shm-write", 1, op_shm_write},
    {"shm-print", 1, op_shm_print},
    {"mq", 1, op_mq},
    {"mq-find", 1, op_mq_find},
    {"mq-drop", 1, op_mq_drop},
    {"mq-send", 1, op_mq_send},
    {"mq-count", 1, op_mq_count},
    {NULL, 0, NULL},
};

/* attack: one unusual system call, by name, for the cases beside it. Stand-alone static C11.
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
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char* op_name;

int refused(const char* step) {
  fprintf(stderr, "attack %s: %s: %s\n", op_name, step, strerror(errno));
  return 1;
}

int check(long result, const char* step) { return result < 0 ? refused(step) : 0; }

int put(int fd) {
  if (fd < 0) return refused("open");
  const int result = check(write(fd, "PWN\n", 4), "write");
  if (fd > 9) close(fd); /* lower ones may be what somebody gave us */
  return result;
}

long number(const char* text) { return strtol(text, NULL, 0); }

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

static const struct op* find(const struct op* ops, const char* name) {
  for (; ops->name; ++ops)
    if (strcmp(ops->name, name) == 0) return ops;
  return NULL;
}

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
  const struct op* op = at < argc ? find(file_ops, argv[at]) : NULL;
  if (at < argc && !op) op = find(host_ops, argv[at]);
  if (op && argc - at - 1 >= op->arguments) {
    int result = 0;
    op_name = op->name;
    for (long n = 0; n < times; ++n) result = op->run(argv + at + 1);
    return result;
  }
  fprintf(stderr, "attack: unknown or incomplete operation\n");
  return 2;
}

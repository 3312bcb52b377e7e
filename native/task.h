/* A process that waits for the answer to one of its calls, seen from the supervisor: its memory, its descriptors and
 * places, who it is. Everything read here can be changed by that process a moment later. C11, single-threaded.
 *
 * Facts: proc(5), openat2(2).
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct task {
  int dir; /* /proc/PID: stays with this process, or fails once it is gone */
  int mem;
};

bool read_memory(const struct task* task, uint64_t address, void* out, size_t size);
/* 0, or an error number. */
int read_string(const struct task* task, uint64_t address, char* out, size_t room);

/* The text of a link, with its end; false when there is none, or it is too long. */
bool read_link(int dir, const char* name, char* out, size_t room);
/* The canonical path of a descriptor of our own. */
bool path_of(int fd, char* out, size_t room);
/* What is left of a path that begins with a link of the process's own in /proc, and in *at where that link leads; "" when
 * nothing is. What the kernel would find there from our side is our own. */
const char* own_way(const char* path, int* at);

/* Whether it is open, and not only as a place (O_PATH). */
bool usable_descriptor(const struct task* task, int number);

/* A descriptor (O_PATH) of what `path` (null: the descriptor `at` itself) means to the process, or -1 with errno. Links
 * of /proc that lead anywhere are not followed: they would be ours. */
int resolve(const struct task* task, int at, const char* path, bool follow);

enum { most_groups = 1024 };

struct identity {
  pid_t process; /* that the thread belongs to */
  uid_t user;
  gid_t group;
  gid_t groups[most_groups];
  size_t group_count;
  uint64_t capabilities; /* effective */
};
/* False: it cannot be told. */
bool read_identity(const struct task* task, struct identity* out);

/* Whether a signal waits that would end a call of it that waits. */
bool interrupted(const struct task* task);

/* Takes on its ids for what is done with files, until take_own_ids(), which must follow. False: they cannot be told. */
bool take_ids(const struct task* task);
void take_own_ids(void);

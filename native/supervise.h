/* The answering side of a confined command's filter (filter.h), inside call-init: for every call that changes files it
 * is asked, before the kernel does it, and knows the writable roots.
 *
 * Names and contents are the confinement's to refuse (mounts, Landlock): a change that the policy denies, and that the
 * user could have made without a sandbox, is told as a denial, and the kernel goes on with the call. That is no
 * decision: the paths are read from memory that the command may change meanwhile. One thing is refused here because no
 * mount can hold it, the making of a protected name that does not exist, and of any name by a path that only the process
 * itself can follow; a program that races this read gets past it.
 *
 * Metadata (which Landlock does not govern, and mounts not for every descriptor) is never let through to the kernel. A
 * change of mode, owner, times or attributes is done here, on a descriptor that was resolved first and then found
 * inside the writable roots, with the ids of whoever asked; or refused. Refused besides: attributes other than user.*
 * and POSIX ACLs, privileged inode flags, other ioctls of file systems. What cannot be read or resolved is refused.
 *
 * connect() is decided in connect.h.
 *
 * Single-threaded, as call-init is. Facts: seccomp_unotify(2), openat2(2), proc(5).
 */
#pragma once
#include <dirent.h>
#include <stdbool.h>

struct path_list { /* canonical */
  const char** items;
  int count;
};

struct supervisor {
  int socket;               /* where the launcher sends the listener; -1: no supervision */
  int listener;             /* -1 until it came */
  struct path_list roots;   /* writable */
  struct path_list kept;    /* read-only inside a root */
  struct path_list absent;  /* names that must not be made, nor anything below, in folders that exist */
  struct path_list open;    /* folders below such a name in which all is as ever */
  struct path_list own;     /* where the runner has file systems of the call's own */
  struct path_list quiet;   /* what is denied there is not worth a word */
  struct path_list sockets; /* not to be connected to: themselves, or what is below */
  DIR* proc;                /* null: nothing can be looked at */
  void (*listening)(void);  /* the listener came */
  void (*denied)(const char* what, const char* path);
  bool (*ours)(unsigned long inode); /* whether a process of the call has this socket open */
};

bool within_any(const char* path, const struct path_list* list);

/* The descriptor to poll for reading, or -1. */
int supervise_fd(const struct supervisor* self);
/* Takes the listener, or answers one call. `events`: what poll() said, not 0. */
void supervise(struct supervisor* self, short events);

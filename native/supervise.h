/* The answering side of a confined command's filter (filter.h), inside call-init: for every call that changes files it
 * is asked, before the kernel does it, and knows the writable roots.
 *
 * Observing: a change that the policy denies, and that the user could have made without a sandbox, is told as a denial;
 * then the kernel goes on with the call, because it is the confinement (mounts, Landlock) that refuses it. What is told
 * is no decision: the paths are read from memory that the command may change meanwhile.
 *
 * Enforcing (metadata, which Landlock does not govern and mounts not for every descriptor): a change of mode, owner,
 * times or attributes is never let through to the kernel. It is done here, on a descriptor that was resolved first and
 * then found inside the writable roots, with the ids of whoever asked; or refused. Refused besides: attributes other
 * than user.* and POSIX ACLs, and inode flags. What cannot be read or resolved is refused.
 *
 * Single-threaded, as call-init is. Facts: seccomp_unotify(2), openat2(2), proc(5).
 */
#pragma once
#include <dirent.h>
#include <stdbool.h>

enum { max_supervised_paths = 64 };

struct supervisor {
  int socket;                              /* where the launcher sends the listener; -1: no supervision */
  int listener;                            /* -1 until it came */
  bool enforce;                            /* metadata */
  const char* roots[max_supervised_paths]; /* canonical, writable */
  int root_count;
  const char* kept[max_supervised_paths]; /* canonical, read-only inside a root */
  int kept_count;
  const char* quiet[max_supervised_paths]; /* canonical: what is denied there is not worth a word */
  int quiet_count;
  DIR* proc;               /* null: nothing can be looked at */
  void (*listening)(void); /* the listener came */
  void (*denied)(const char* what, const char* path);
};

/* The descriptor to poll for reading, or -1. */
int supervise_fd(const struct supervisor* self);
/* Takes the listener, or answers one call. `events`: what poll() said, not 0. */
void supervise(struct supervisor* self, short events);

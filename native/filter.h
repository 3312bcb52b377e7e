/* The system call filter of a confined command, and the one table of calls that change files: landlock-run installs it,
 * call-init answers for it. C11, stand-alone.
 *
 * Always: calls of other architectures and of x32 are answered ENOSYS (their numbers would pass a filter written for
 * these), and so is io_uring (it performs what a filter never sees). TIOCSTI and TIOCLINUX, which type into the
 * terminal of whoever started us, mounts and limits of other processes are answered EPERM, calls about keys ENOSYS. With a
 * listener, PR_SET_DUMPABLE 0 does nothing. A process that has a filter keeps it for ever, and so does all it starts.
 *
 * Facts: seccomp(2), seccomp_unotify(2), include/uapi/linux/seccomp.h; numbers from arch/x86/entry/syscalls and
 * include/uapi/asm-generic/unistd.h.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum change {
  change_open,     /* create, write or cut, by its flags */
  change_make,     /* a new name: mkdir, mknod, symlink */
  change_remove,   /* unlink, rmdir */
  change_rename,   /* two names */
  change_link,     /* two names, the second new */
  change_truncate, /* the contents of a named file */
  change_mode,
  change_owner,
  change_times,
  change_xattr,
  change_no_xattr,
  change_flags /* ioctl on a descriptor: inode flags, project, version */
};

/* Where a call has its arguments; -1: it has none. Without a path, `at` is the changed descriptor itself; without `at`,
 * a path starts at the working directory. */
struct changing_call {
  int number;
  enum change change;
  signed char at, path, at2, path2, flags;
};

extern const struct changing_call changing_calls[];
extern const size_t changing_call_count;

/* Of mode, owner, times, attributes: what Landlock does not govern at any ABI. */
static inline bool is_metadata(enum change change) { return change >= change_mode; }

enum { nr_openat2 = 437 /* 5.6; the same everywhere */ };

enum metadata_rule { metadata_free, metadata_refused };

/* Installs the filter on this process; no_new_privs must be set. With `listener`, every changing call (and, with
 * `connects`, connect() too) waits for the process that is given *listener (whatever `rule` says); calls newer than the
 * table that would change metadata are answered ENOSYS, so that programs fall back on older ones. Without, metadata
 * changes are refused with EACCES or left free. 0, or -1 with errno (EBUSY: a process above already listens). */
int install_filter(enum metadata_rule rule, int* listener, bool connects);

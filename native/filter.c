#define _GNU_SOURCE
#include "filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the low half of an argument is read at its start"
#endif

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "the table below has no numbers for this architecture"
#endif

enum {                          /* the same on both architectures */
       nr_io_uring_setup = 425, /* 5.1, and _enter, _register */
       nr_io_uring_register = 427,

       nr_fchmodat2 = 452,     /* 6.6 */
       nr_setxattrat = 463,    /* 6.13 */
       nr_removexattrat = 466, /* 6.13 */
       nr_file_setattr = 469,  /* 6.17 */
       x32_bit = 0x40000000,
       flag_wait_killable = 1 << 5, /* 5.19 */
       max_instructions = 256
};

const struct changing_call changing_calls[] = {
#if defined(__x86_64__)
    {SYS_open, change_open, -1, 0, -1, -1, 1},
    {SYS_creat, change_open, -1, 0, -1, -1, -1},
    {SYS_mkdir, change_make, -1, 0, -1, -1, -1},
    {SYS_mknod, change_make, -1, 0, -1, -1, -1},
    {SYS_symlink, change_make, -1, 1, -1, -1, -1},
    {SYS_unlink, change_remove, -1, 0, -1, -1, -1},
    {SYS_rmdir, change_remove, -1, 0, -1, -1, -1},
    {SYS_rename, change_rename, -1, 0, -1, 1, -1},
    {SYS_link, change_link, -1, 0, -1, 1, -1},
    {SYS_chmod, change_mode, -1, 0, -1, -1, -1},
    {SYS_chown, change_owner, -1, 0, -1, -1, -1},
    {SYS_lchown, change_owner, -1, 0, -1, -1, -1},
    {SYS_utime, change_times, -1, 0, -1, -1, -1},
    {SYS_utimes, change_times, -1, 0, -1, -1, -1},
    {SYS_futimesat, change_times, 0, 1, -1, -1, -1},
#endif
#if defined(SYS_renameat)
    {SYS_renameat, change_rename, 0, 1, 2, 3, -1},
#endif
    {SYS_openat, change_open, 0, 1, -1, -1, 2},
    {nr_openat2, change_open, 0, 1, -1, -1, 2},
    {SYS_mkdirat, change_make, 0, 1, -1, -1, -1},
    {SYS_bind, change_make, -1, 1, -1, -1, -1}, /* the path is in an address */
    {SYS_mknodat, change_make, 0, 1, -1, -1, -1},
    {SYS_symlinkat, change_make, 1, 2, -1, -1, -1},
    {SYS_unlinkat, change_remove, 0, 1, -1, -1, -1},
    {SYS_renameat2, change_rename, 0, 1, 2, 3, -1},
    {SYS_linkat, change_link, 0, 1, 2, 3, 4},
    {SYS_truncate, change_truncate, -1, 0, -1, -1, -1},
    {SYS_fchmod, change_mode, 0, -1, -1, -1, -1},
    {SYS_fchmodat, change_mode, 0, 1, -1, -1, -1},
    {SYS_fchown, change_owner, 0, -1, -1, -1, -1},
    {SYS_fchownat, change_owner, 0, 1, -1, -1, 4},
    {SYS_utimensat, change_times, 0, 1, -1, -1, 3},
    {SYS_setxattr, change_xattr, -1, 0, -1, -1, -1},
    {SYS_lsetxattr, change_xattr, -1, 0, -1, -1, -1},
    {SYS_fsetxattr, change_xattr, 0, -1, -1, -1, -1},
    {SYS_removexattr, change_no_xattr, -1, 0, -1, -1, -1},
    {SYS_lremovexattr, change_no_xattr, -1, 0, -1, -1, -1},
    {SYS_fremovexattr, change_no_xattr, 0, -1, -1, -1, -1},
    {SYS_ioctl, change_flags, 0, -1, -1, -1, 1},
};
const size_t changing_call_count = sizeof changing_calls / sizeof *changing_calls;

/* Mounts, and names of them that no path leads to. Landlock refuses only some, and a detached copy of a tree shows its
 * files under paths that are not theirs; a user namespace gives every command the right to try. */
static const int mount_calls[] = {SYS_mount,
                                  SYS_umount2,
                                  SYS_pivot_root,
                                  SYS_setns,
                                  428 /* open_tree, 5.2 */,
                                  429 /* move_mount */,
                                  430 /* fsopen */,
                                  431 /* fsconfig */,
                                  432 /* fsmount */,
                                  433 /* fspick */,
                                  442 /* mount_setattr, 5.12 */,
                                  467 /* open_tree_attr, 6.15 */};
/* Keys of the user and of the session outlive every call, and are others' too. */
static const int key_calls[] = {SYS_add_key, SYS_request_key, SYS_keyctl};

static const int too_new[] = {nr_fchmodat2, nr_setxattrat, nr_removexattrat, nr_file_setattr};
/* The types of ioctl that file systems use on files and folders: flags, attributes, versions, encryption, verity,
 * snapshots. Most need no descriptor that is open for writing. What only reads, or copies into one that is, is let
 * through; a type has room for calls of the future, so the list is of those. Facts: include/uapi/linux/{fs,fscrypt,
 * fsverity,fiemap,btrfs}.h, fs/ext4/ioctl.h. */
static const uint32_t inode_types[] = {'f', 'v', 'X', 0x94};
static const uint32_t harmless_ioctls[] = {FS_IOC_GETFLAGS,
                                           FS_IOC32_GETFLAGS,
                                           FS_IOC_GETVERSION,
                                           FS_IOC32_GETVERSION,
                                           FS_IOC_FSGETXATTR,
                                           FS_IOC_GETFSLABEL,
                                           FICLONE,
                                           FICLONERANGE,
                                           FIDEDUPERANGE,
                                           0xc020660b /* FIEMAP */,
                                           0x400c6615,
                                           0xc0096616 /* GET_ENCRYPTION_POLICY */,
                                           0xc0046686 /* MEASURE_VERITY */,
                                           0xc0286687 /* READ_VERITY_METADATA */};
static const uint32_t typing_ioctls[] = {TIOCSTI, TIOCLINUX};

/* Whether open() would create, write or cut. O_TMPFILE implies writing. */
static const uint32_t writing_flags = O_ACCMODE | O_CREAT | O_TRUNC;

struct program {
  struct sock_filter code[max_instructions];
  unsigned short length;
};

static void add(struct program* p, unsigned short code, uint32_t k, uint8_t yes, uint8_t no) {
  if (p->length < max_instructions) p->code[p->length] = (struct sock_filter){code, yes, no, k};
  p->length++;
}
static void load(struct program* p, size_t offset) { add(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0); }
static void answer(struct program* p, uint32_t action) { add(p, BPF_RET | BPF_K, action, 0, 0); }
static void if_equal(struct program* p, uint32_t value, uint32_t action) {
  add(p, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
  answer(p, action);
}
static size_t argument(int index) { return offsetof(struct seccomp_data, args) + 8 * (size_t)index; }

static void add_open(struct program* p, const struct changing_call* call, uint32_t action) {
  add(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call->number, 0, 4);
  load(p, argument(call->flags));
  add(p, BPF_JMP | BPF_JSET | BPF_K, writing_flags, 0, 1);
  answer(p, action);
  answer(p, SECCOMP_RET_ALLOW);
}

/* Compared are the 32 bits that the kernel looks at: the others of the argument may hold anything. */
static void add_ioctl(struct program* p, uint32_t action) {
  enum { harmless = sizeof harmless_ioctls / sizeof *harmless_ioctls };
  enum { typing = sizeof typing_ioctls / sizeof *typing_ioctls, types = sizeof inode_types / sizeof *inode_types };
  enum { length = 1 + 2 * typing + 2 * harmless + 2 + 2 * types + 1 };
  add(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, length);
  load(p, argument(1));
  for (size_t i = 0; i < typing; ++i) if_equal(p, typing_ioctls[i], SECCOMP_RET_ERRNO | EPERM);
  for (size_t i = 0; i < harmless; ++i) if_equal(p, harmless_ioctls[i], SECCOMP_RET_ALLOW);
  add(p, BPF_ALU | BPF_RSH | BPF_K, 8, 0, 0); /* the type is the second byte */
  add(p, BPF_ALU | BPF_AND | BPF_K, 0xff, 0, 0);
  for (size_t i = 0; i < types; ++i) if_equal(p, inode_types[i], action);
  answer(p, SECCOMP_RET_ALLOW);
}

/* Limits of other processes: the reaper's among them, without which nothing would end a call. */
static void add_prlimit(struct program* p) {
  add(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_prlimit64, 0, 9);
  load(p, argument(0));
  add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1);
  answer(p, SECCOMP_RET_ALLOW);
  load(p, argument(2)); /* reading them is free */
  add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3);
  load(p, argument(2) + 4);
  add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1);
  answer(p, SECCOMP_RET_ALLOW);
  answer(p, SECCOMP_RET_ERRNO | EPERM);
}

/* A process that hides its memory could not be asked where it makes a file. It is told that it does. */
static void add_dumpable(struct program* p) {
  add(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 6);
  load(p, argument(0));
  add(p, BPF_JMP | BPF_JEQ | BPF_K, PR_SET_DUMPABLE, 0, 3);
  load(p, argument(1));
  add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1);
  answer(p, SECCOMP_RET_ERRNO);
  answer(p, SECCOMP_RET_ALLOW);
}

int install_filter(enum metadata_rule rule, int* listener, bool connects) {
  const uint32_t no_call = SECCOMP_RET_ERRNO | ENOSYS;
  const uint32_t names = listener ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW;
  const uint32_t metadata = listener                   ? SECCOMP_RET_USER_NOTIF
                            : rule == metadata_refused ? SECCOMP_RET_ERRNO | EACCES
                                                       : SECCOMP_RET_ALLOW;
  struct program p = {.length = 0};
  load(&p, offsetof(struct seccomp_data, arch));
  add(&p, BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0);
  answer(&p, no_call);
  load(&p, offsetof(struct seccomp_data, nr));
#if defined(__x86_64__)
  add(&p, BPF_JMP | BPF_JGE | BPF_K, x32_bit, 0, 1);
  answer(&p, no_call);
#endif
  for (uint32_t number = nr_io_uring_setup; number <= nr_io_uring_register; ++number) if_equal(&p, number, no_call);
  for (size_t i = 0; i < sizeof mount_calls / sizeof *mount_calls; ++i)
    if_equal(&p, (uint32_t)mount_calls[i], SECCOMP_RET_ERRNO | EPERM);
  for (size_t i = 0; i < sizeof key_calls / sizeof *key_calls; ++i) if_equal(&p, (uint32_t)key_calls[i], no_call);
  add_prlimit(&p);
  if (listener) add_dumpable(&p);
  if (metadata != SECCOMP_RET_ALLOW) {
    for (size_t i = 0; i < sizeof too_new / sizeof *too_new; ++i) if_equal(&p, (uint32_t)too_new[i], no_call);
  }
  if (listener && connects) if_equal(&p, SYS_connect, SECCOMP_RET_USER_NOTIF);
  for (size_t i = 0; i < changing_call_count; ++i) {
    const struct changing_call* call = &changing_calls[i];
    const uint32_t action = is_metadata(call->change) ? metadata : names;
    if (call->change == change_flags) {
      add_ioctl(&p, action);
    } else if (action == SECCOMP_RET_ALLOW) {
      continue;
    } else if (call->change == change_open && call->flags >= 0 && call->number != nr_openat2) {
      add_open(&p, call, action);
    } else {
      if_equal(&p, (uint32_t)call->number, action);
    }
  }
  answer(&p, SECCOMP_RET_ALLOW);
  if (p.length > max_instructions) {
    errno = E2BIG;
    return -1;
  }
  const struct sock_fprog filter = {.len = p.length, .filter = p.code};
  if (!listener) return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &filter);
  /* Killable: a signal to the caller (Go's runtime sends many) must not make it repeat a call that is being done. */
  const unsigned flags = SECCOMP_FILTER_FLAG_SPEC_ALLOW | SECCOMP_FILTER_FLAG_NEW_LISTENER;
  *listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags | flag_wait_killable, &filter);
  if (*listener < 0 && errno == EINVAL) *listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);
  return *listener < 0 ? -1 : 0;
}

/* What the files of `attack` share. */
#ifndef ATTACK_H
#define ATTACK_H

/* Numbers newer than the headers of Debian 12 (6.1); the same on every architecture from 424 on. */
enum {
  nr_open_tree = 428,
  nr_move_mount = 429,
  nr_fsopen = 430,
  nr_fsconfig = 431,
  nr_fsmount = 432,
  nr_pidfd_open = 434,
  nr_openat2 = 437,
  nr_pidfd_getfd = 438,
  nr_mount_setattr = 442,
  nr_fchmodat2 = 452,     /* 6.6 */
  nr_setxattrat = 463,    /* 6.13 */
  nr_removexattrat = 466, /* 6.13 */
  nr_file_getattr = 468,  /* 6.17 */
  nr_file_setattr = 469   /* 6.17 */
};

struct op {
  const char* name;
  int arguments; /* at least */
  int (*run)(char** arguments);
};

extern const struct op file_ops[]; /* both end with a null name */
extern const struct op host_ops[];

/* 1, after one line that names the step and errno. */
int refused(const char* step);
/* The same if `result` is negative, else 0. */
int check(long result, const char* step);
/* Writes a few bytes. */
int put(int fd);
long number(const char* text);

#endif

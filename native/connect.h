/* connect() of a confined command, done for it, so that the control sockets of the host stay out of reach where neither
 * mounts nor Landlock (before ABI 9) can cover them.
 *
 * The address is read once and resolved once; what is connected to is that descriptor, or that address, and never what
 * the process has written there since. Refused are the sockets of the list, under any name, and what is below its
 * folders; and sockets without a place in the file system that no process of the call has open, as Landlock's scope
 * would do for the process itself. Everything else happens as it would have: with the ids and capabilities of the
 * process, waiting for as long as it takes, ended by a signal that the process catches. The one thing another program
 * can tell is the pid of its peer.
 *
 * Facts: connect(2), unix(7), pidfd_getfd(2), net/unix/af_unix.c (the format of /proc/net/unix).
 */
#pragma once
#include <linux/seccomp.h>
#include <stdbool.h>

#include "supervise.h"
#include "task.h"

enum { answered_elsewhere = -2 };

/* To be called before the command starts: it could give a socket another name. False with errno. */
bool remember_sockets(const struct path_list* sockets);

/* An error number, or answered_elsewhere: a child of ours does the call and answers it. */
int connect_for(const struct supervisor* self, const struct task* task, const struct seccomp_notif* asked);

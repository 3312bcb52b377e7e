"""Runs inside: system calls by name, one after the other, as generate.py wrote them. `calls.py JSON`; needs only ctypes.

A step is [name, argument..., "=x"?]. A number is itself, null is 0, "@x" the descriptor that a step before kept as x, any
other string a path, in which $VARIABLES and {x} (a descriptor's number) are filled in; {"hex": ...} is memory. Whatever a
call answers, the next one is tried. Steps that are no single call are in `Runner`.
"""
import ctypes
import json
import os
import signal
import socket
import sys
import threading
import time

LIMIT = 2                # seconds that a process of ours lives
DEEP, AT_CWD = 18, -100
X86 = os.uname().machine == "x86_64"
# By architecture: x86_64, and the numbers of all newer ones. 0: has none.
NUMBERS = {
    "open": (2, 0), "creat": (85, 0), "openat": (257, 56), "openat2": (437, 437), "write": (1, 64), "pwrite64": (18, 68),
    "close": (3, 57), "dup": (32, 23), "dup3": (292, 24), "fcntl": (72, 25), "ioctl": (16, 29), "chdir": (80, 49),
    "fchdir": (81, 50), "chroot": (161, 51), "unshare": (272, 97), "setns": (308, 268), "mkdir": (83, 0), "mkdirat": (258, 34),
    "rmdir": (84, 0), "mknod": (133, 0), "mknodat": (259, 33), "symlink": (88, 0), "symlinkat": (266, 36), "link": (86, 0),
    "linkat": (265, 37), "rename": (82, 0), "renameat": (264, 0), "renameat2": (316, 276), "unlink": (87, 0),
    "unlinkat": (263, 35), "truncate": (76, 45), "ftruncate": (77, 46), "fallocate": (285, 47), "copy_file_range": (326, 285),
    "chmod": (90, 0), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, 0), "lchown": (94, 0),
    "fchown": (93, 55), "fchownat": (260, 54), "utime": (132, 0), "utimes": (235, 0), "futimesat": (261, 0),
    "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14),
    "lremovexattr": (198, 15), "fremovexattr": (199, 16), "setxattrat": (463, 463), "removexattrat": (466, 466),
    "file_setattr": (469, 469), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fspick": (433, 433), "mount_setattr": (442, 442), "setsid": (112, 157),
    "setresuid": (117, 147), "kill": (62, 129), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138), "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438), "prlimit64": (302, 261), "ptrace": (101, 117),
    "process_vm_writev": (311, 271), "process_madvise": (440, 440), "memfd_create": (319, 279), "umask": (95, 166),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "prctl": (157, 167), "fsync": (74, 82),
}
libc = ctypes.CDLL(None, use_errno=True)


class Runner:
    def __init__(self):
        self.kept = {}

    def text(self, value):
        value = os.path.expandvars(value)
        for name, fd in self.kept.items():
            value = value.replace("{" + name + "}", str(fd))
        return value

    def argument(self, value):
        if value is None:
            return ctypes.c_long(0)
        if isinstance(value, int):
            return ctypes.c_long(value)
        if isinstance(value, dict):
            return ctypes.create_string_buffer(bytes.fromhex(value["hex"]))
        if value.startswith("@"):
            return ctypes.c_long(self.kept.get(value[1:], 99))
        if value.startswith("#"):                          # a number from the environment
            return ctypes.c_long(int(os.environ.get(value[1:], "-1"), 0))
        return ctypes.create_string_buffer(os.fsencode(self.text(value)))

    def steps(self, steps):
        for step in steps:
            self.step(step)

    def step(self, step):
        name, *rest = step
        special = getattr(self, "do_" + name, None)
        if special:
            return special(*rest)
        keep = rest.pop()[1:] if rest and isinstance(rest[-1], str) and rest[-1].startswith("=") else None
        number = NUMBERS[name][0 if X86 else 1]
        result = libc.syscall(ctypes.c_long(number), *[self.argument(value) for value in rest]) if number else -1
        if keep and result >= 0:
            self.kept[keep] = result
        if os.environ.get("CALLS_SHOWN"):
            print(name, rest, "->", result, os.strerror(ctypes.get_errno()) if result < 0 else "", file=sys.stderr)
        return result

    # -- what is more than one call ------------------------------------------------------------------------------------

    def do_fork(self, both=False):
        """What follows is done by a child; by the parent too, or it ends."""
        if os.fork() == 0:
            signal.alarm(LIMIT)
        elif not both:
            os._exit(0)

    def do_sleep(self, ms):
        time.sleep(min(ms, 1500) / 1000)

    def do_ignore_signals(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)

    def do_thread(self, steps):
        """With a table of descriptors and a working directory of its own."""
        def run():
            libc.unshare(0x400 | 0x200)
            self.steps(steps)
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(1)

    def do_chrooted(self, flags, folder, steps):
        """Only where it worked: elsewhere the paths would mean the host's."""
        pid = os.fork()
        if pid == 0:
            signal.alarm(LIMIT)
            if (not flags or libc.unshare(flags) == 0) and self.step(["chroot", folder]) == 0:
                os.chdir("/")
                self.steps(steps)
            os._exit(0)
        os.waitpid(pid, 0)

    def do_deep(self, steps):
        """From a working directory whose path is longer than any call takes: "/x" is what lies in the workspace."""
        os.chdir(os.environ["WS"])
        for _ in range(DEEP):
            os.mkdir("x" * 250)
            os.chdir("x" * 250)
        for step in steps:
            self.step([part if not isinstance(part, str) or part[:1] != "/" else "../" * DEEP + part[1:] for part in step])

    def do_by_handle(self, path, mount, flags, keep):
        """Opens what a handle means, by way of another folder of the file system."""
        handle, mount_id = ctypes.create_string_buffer(b"\x80", 136), ctypes.c_int()
        libc.syscall(NUMBERS["name_to_handle_at"][0 if X86 else 1], AT_CWD, os.fsencode(self.text(path)), handle,
                     ctypes.byref(mount_id), 0)
        fd = os.open(self.text(mount), os.O_RDONLY)
        result = libc.syscall(NUMBERS["open_by_handle_at"][0 if X86 else 1], fd, handle, flags)
        if result >= 0:
            self.kept[keep[1:]] = result

    def do_pass(self, name, steps):
        """Hands the descriptor to a child over a socket; the child goes on with it."""
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            signal.alarm(LIMIT)
            _, fds, _, _ = socket.recv_fds(theirs, 1, 1)
            self.kept = {name: fd for fd in fds}
            self.steps(steps)
            os._exit(0)
        socket.send_fds(ours, [b"x"], [self.kept.get(name, 0)])
        theirs.close()
        ours.close()
        os.waitpid(pid, 0)

    def do_race(self, one, other):
        """Both again and again, for a moment."""
        end = time.monotonic() + 0.15
        pid = os.fork()
        if pid == 0:
            signal.alarm(LIMIT)
        while time.monotonic() < end:
            self.step(one if pid == 0 else other)
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)

    def do_repeat(self, times, step):
        for _ in range(min(times, 500)):
            self.step(step)

    def do_bind(self, path, kind):
        server = socket.socket(socket.AF_UNIX, (socket.SOCK_STREAM, socket.SOCK_DGRAM)[kind])
        path = self.text(path)
        server.bind("\0" + path[1:] if path.startswith("%") else path)
        self.kept["s"] = os.dup(server.fileno())

    def do_connect(self, path, kind):
        client = socket.socket(socket.AF_UNIX, (socket.SOCK_STREAM, socket.SOCK_DGRAM)[kind])
        client.settimeout(0.5)
        path = self.text(path)
        client.connect("\0" + path[1:] if path.startswith("%") else path)
        client.send(b"PWN")

    def do_map(self, name):
        """A mapping of a descriptor that is open for reading, made writable, and written."""
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
        memory = libc.mmap(None, 4096, 1, 1, self.kept.get(name, -1), 0)
        if memory != ctypes.c_void_p(-1).value and libc.mprotect(ctypes.c_void_p(memory), ctypes.c_size_t(4096), 3) == 0:
            ctypes.memmove(memory, b"PWN", 3)

    def do_exec(self, *argv):
        """This program of memory without a name, or another, in a child."""
        pid = os.fork()
        if pid == 0:
            signal.alarm(LIMIT)
            path = argv[0] if argv[0] != "memory" else "$ATTACK"
            with open(self.text(path), "rb") as f:
                fd = os.memfd_create("program")
                os.write(fd, f.read())
            os.execve(fd, [self.text(word) for word in argv], os.environ)
        os.waitpid(pid, 0)

    def do_owner(self, number):
        """A signal to the victim by way of a descriptor's owner."""
        import fcntl
        ours, theirs = socket.socketpair()
        fcntl.fcntl(ours, fcntl.F_SETOWN, int(os.environ["VICTIM"]))
        fcntl.fcntl(ours, fcntl.F_SETSIG, number)
        fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
        theirs.send(b"x")


def main():
    signal.alarm(LIMIT)
    runner = Runner()
    for step in json.loads(sys.argv[1]):
        try:
            runner.step(step)
        except Exception as error:                                  # the next one is tried all the same
            if os.environ.get("CALLS_SHOWN"):
                print(step, "->", error, file=sys.stderr)


if __name__ == "__main__":
    main()

"""What the kernel and the sandbox alone cost: the very argv that the agent starts for a command, started again by us.

The agent starts `call-init --control FD --status FD [--pass FD]... [--listener FD ...] -- ARGV`; we read that argv of a
running command from /proc, put our own pipes at the same numbers (and a pair of sockets at the listener's and the last passed
one's) and time it from the start to the end of the command's output.
"""
import fcntl
import os
import select
import socket
import time


def find_call_init(agent_pid, last_word, deadline):
    """argv of the agent's call-init for the command that ends in this word, its working directory and its environment."""
    while time.monotonic() < deadline:
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as f:
                    argv = [a.decode() for a in f.read().split(b"\0")[:-1]]
                if not argv or os.path.basename(argv[0]) != "call-init" or argv[-1] != last_word:
                    continue
                with open(f"/proc/{entry}/stat", encoding="latin1") as f:
                    parent = int(f.read().rsplit(")", 1)[1].split()[1])
                if parent != agent_pid:
                    continue
                argv[0] = os.readlink(f"/proc/{entry}/exe")
                cwd = os.readlink(f"/proc/{entry}/cwd")
                with open(f"/proc/{entry}/environ", "rb") as f:
                    environment = dict(p.split("=", 1) for p in f.read().decode("utf-8", "replace").split("\0") if "=" in p)
                return argv, cwd, environment
            except (OSError, IndexError, ValueError):
                continue
        time.sleep(0.005)
    raise RuntimeError("no call-init of the agent was seen")


class Command:
    """`argv`: of call-init, whole."""

    def __init__(self, argv, cwd, environment):
        self.argv, self.cwd, self.environment = argv, cwd, environment
        numbers, self.passed, at = {}, [], 1
        while argv[at] != "--":
            if argv[at] == "--pass":
                self.passed.append(int(argv[at + 1]))
            elif argv[at] in ("--control", "--status", "--listener"):
                numbers[argv[at]] = int(argv[at + 1])
            at += 2
        self.control, self.status, self.listener = numbers["--control"], numbers["--status"], numbers.get("--listener")
        # dup2 onto a number that one of our own pipes has would close that pipe: ours live above all of these.
        self.base = max([*numbers.values(), *self.passed]) + 20

    def _raised(self, pair):
        raised = tuple(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, self.base) for fd in pair)
        for fd in pair:
            os.close(fd)
        return raised

    def _pipe(self):
        return self._raised(os.pipe())

    def _sockets(self):
        return self._raised([end.detach() for end in socket.socketpair()])

    def time_once(self):
        """Seconds from the start until both output pipes are at their end and call-init said that nothing is left."""
        out, err, control, status = self._pipe(), self._pipe(), self._pipe(), self._pipe()
        last = len(self.passed) - 1 if self.listener is not None else None
        extra = [self._sockets() if i == last else self._pipe() for i in range(len(self.passed))]
        null = os.open("/dev/null", os.O_RDONLY)
        actions = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, out[1], 1), (os.POSIX_SPAWN_DUP2, err[1], 2),
                   (os.POSIX_SPAWN_DUP2, control[0], self.control), (os.POSIX_SPAWN_DUP2, status[1], self.status)]
        actions += [(os.POSIX_SPAWN_DUP2, pair[1], number) for pair, number in zip(extra, self.passed)]
        if last is not None:
            actions.append((os.POSIX_SPAWN_DUP2, extra[last][0], self.listener))
        os.chdir(self.cwd)
        start = time.monotonic()
        pid = os.posix_spawn(self.argv[0], self.argv, self.environment, file_actions=actions)
        for fd in (out[1], err[1], control[0], status[1], null, *(p[1] for p in extra)):
            os.close(fd)
        waiting, said = {out[0], err[0], status[0]}, b""
        while waiting:
            for fd in select.select(list(waiting), [], [])[0]:
                data = os.read(fd, 65536)
                if fd == status[0]:
                    said += data
                if not data:
                    waiting.discard(fd)
            if waiting == {status[0]} and b"\nE" in b"\n" + said:
                break                # as the agent: the exit is known and the output is at its end
        seconds = time.monotonic() - start
        for fd in (out[0], err[0], control[1], status[0], *(p[0] for p in extra)):
            os.close(fd)
        os.waitpid(pid, 0)
        if b"E 0" not in said:
            raise RuntimeError(f"the command did not exit with 0: {said!r} {self.argv}")
        return seconds


def replaced(argv, old, new):
    """argv with the words `old` at its end replaced."""
    if argv[-len(old):] != old:
        raise RuntimeError(f"the argv of call-init does not end in {old}: {argv}")
    return argv[:-len(old)] + new

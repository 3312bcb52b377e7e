"""The host side of one case in one place of the matrix: its folders, its processes, and what is left of them."""
import dataclasses
import fcntl
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import termios
import threading
import time

from case import REFUSED, tree

MARK = "ATTACK_MARK"
OLD_PIDS = {name for name in os.listdir("/proc") if name.isdigit()}      # none of ours


@dataclasses.dataclass(frozen=True)
class Place:
    runner: str              # bwrap, landlock; none: unconfined, to see that the attacks are real
    mode: str
    user: str                # root, ordinary

    def __str__(self):
        return f"{self.runner}/{self.mode}/{self.user}"


@dataclasses.dataclass
class Tools:
    agent: list              # argv, the binary last
    launcher: str
    helper: str
    uid: int                 # of the ordinary user


@dataclasses.dataclass
class Done:
    code: int
    out: str
    err: str
    seconds: float
    timed_out: bool = False

    def last_line(self):
        lines = [line for line in self.err.splitlines() if line.strip()]
        return lines[-1][:160] if lines else ""


class World:
    def __init__(self, base, case, place, tools):
        self.case, self.place, self.tools, self.base = case, place, tools, base
        self.mode, self.runner, self.user = place.mode, place.runner, place.user
        self.baseline = place.runner == "none"
        self.unique = "-".join(base.split("/")[-3:]).removeprefix("acp-attacks-")
        self.mark = f"{self.unique}-{os.getpid()}"
        self.ws, self.out, self.home, self.host_dir = (os.path.join(base, n) for n in ("ws", "out", "home", "host"))
        self.number = 0x5a000000 + (hash(self.mark) & 0xffffff)      # a key nobody else uses
        self.done = Done(-1, "", "", 0)
        self.children, self.closers, self.victim_process, self.note = [], [], None, {}
        self.own_uid = 0 if self.user == "root" else (tools.uid if os.getuid() == 0 else os.getuid())

    # -- folders -----------------------------------------------------------------------------------------------------

    def path(self, where):
        where = where.replace("{unique}", self.unique)
        return where if where.startswith("/") else os.path.join(self.base, where)

    def build(self):
        for folder in (self.ws, self.out, self.out + "/d", self.home, self.host_dir):
            os.makedirs(folder)
        for path, text in ((self.ws + "/f", "MINE\n"), (self.ws + "/g", "MINE TOO\n"), (self.out + "/f", "ORIG\n"),
                           (self.out + "/g", "ORIG TOO\n")):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            os.chmod(path, 0o644)
            os.setxattr(path, "user.mark", b"1")
            os.utime(path, (1600000000, 1600000000))
        if os.getuid() == 0 and self.own_uid != 0:
            for folder, _, files in os.walk(self.base):
                for name in [folder] + [os.path.join(folder, f) for f in files]:
                    os.lchown(name, self.own_uid, self.own_uid)
        if self.case.victim:
            self.start_victim()
        if self.case.tty:
            self.open_tty()
        if isinstance(self.case.setup, str):
            ready = self.host(self.case.setup, self.base)
            if ready.code != 0:
                raise RuntimeError(f"set-up failed: {ready.last_line()}")
        elif self.case.setup:
            self.case.setup(self)
        self.before_out, self.before_ws = tree(self.out), tree(self.ws)
        if self.victim_process:
            self.victim_before = self.ask()

    def close(self):
        if self.case.undo:
            self.case.undo(self)
        for pid in self.processes():
            self.kill(pid)
        for child in self.children:
            child.kill()
            child.wait()
            for stream in (child.stdin, child.stdout):
                try:
                    stream and stream.close()
                except BrokenPipeError:              # a question that nobody read
                    pass
        for closer in self.closers:
            closer()
        shutil.rmtree(self.base, ignore_errors=True)
        if os.path.exists(self.base):
            subprocess.run(["chmod", "-R", "u+rwx", self.base], stderr=subprocess.DEVNULL, check=False)
            shutil.rmtree(self.base, ignore_errors=True)

    def host(self, command, cwd):
        return self.call(self.as_user() + ["bash", "-c", command], cwd=cwd, marked=False)

    # -- running -----------------------------------------------------------------------------------------------------

    def as_user(self):
        if self.user == "root" or os.getuid() != 0:
            return []
        return ["setpriv", f"--reuid={self.own_uid}", f"--regid={self.own_uid}", "--clear-groups"]

    def environment(self, marked=True):
        env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "HOME": self.home,
               "XDG_STATE_HOME": self.base + "/state", "WS": self.ws, "OUT": self.out, "BASE": self.base,
               "ATTACK": self.tools.helper, "UNIQUE": self.unique, "NUMBER": str(self.number)}
        env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
        if marked:
            env[MARK] = self.mark
        if self.victim_process:
            env.update(zip(("VICTIM", "ADDRESS", "VICTIM_FD"), self.victim))
        extra = self.case.env(self) if callable(self.case.env) else self.case.env or {}
        env.update(extra)
        return {k: v for k, v in env.items() if v is not None}

    def argv(self, command, mode=None, root=None):
        wrap = self.as_user() + (self.case.wrap(self) if self.case.wrap else [])
        inner = command if isinstance(command, list) else ["bash", "-c", command]
        if self.baseline:
            return wrap + inner
        mode = mode or self.mode
        if self.case.via == "launcher":
            writable = ["--rw", "/dev/null"] + (["--rw", self.ws] if mode != "read-only" else [])
            return wrap + [self.tools.launcher, "--ro", "/"] + writable + ["--"] + inner
        root = root or (self.case.root(self) if self.case.root else self.ws)
        return wrap + self.tools.agent + ["confine", "--mode", mode, "--root", root, "--runner", self.runner, "--"] + inner

    def run(self, command=None, **more):
        """One call, as the case describes it."""
        self.done = self.call(self.argv(self.case.run if command is None else command, **more),
                              cwd=self.path(self.case.cwd), stdin=self.case.stdin and self.path(self.case.stdin))
        return self.done

    def start(self, argv, cwd=None, stdin=None, marked=True, **more):
        for stream in ("stdout", "stderr"):
            more.setdefault(stream, subprocess.DEVNULL)
        source = open(stdin, "rb") if isinstance(stdin, str) and stdin and not os.path.isdir(stdin) else None
        fd = os.open(stdin, os.O_RDONLY) if isinstance(stdin, str) and stdin and os.path.isdir(stdin) else None
        if isinstance(stdin, int):
            fd = os.dup(stdin)
        try:
            return subprocess.Popen(argv, cwd=cwd or self.base, env=self.environment(marked),
                                    stdin=source if source else fd if fd is not None else subprocess.DEVNULL,
                                    start_new_session=True, **more)
        finally:
            if source:
                source.close()
            if fd is not None:
                os.close(fd)

    def call(self, argv, cwd=None, stdin=None, marked=True):
        """Until the direct child ends, whoever else holds its pipes."""
        begin = time.monotonic()
        out_fd, out_end = self.pipe()
        err_fd, err_end = self.pipe()
        child = self.start(argv, cwd, self.tty_fd if self.case.tty and marked else stdin, marked, stdout=out_end,
                           stderr=err_end)
        os.close(out_end)
        os.close(err_end)
        pidfd = os.pidfd_open(child.pid)
        texts = {out_fd: [], err_fd: []}
        open_fds, poller, ended, timed_out = set(texts), select.poll(), False, False
        for fd in list(texts) + [pidfd]:
            os.set_blocking(fd, False)
            poller.register(fd, select.POLLIN)
        while not ended:
            left = begin + self.case.limit - time.monotonic()
            if left <= 0:
                timed_out = True
                os.killpg(child.pid, signal.SIGKILL)
                left = 1
            for fd, _ in poller.poll(left * 1000):
                if fd == pidfd:
                    ended = True
                elif not self._read(fd, texts[fd]):
                    open_fds.discard(fd)
                    poller.unregister(fd)
        for fd in open_fds:
            while self._read(fd, texts[fd], final=True):
                pass
        code = child.wait()
        for fd in (pidfd, out_fd, err_fd):
            os.close(fd)
        out, err = (b"".join(texts[fd]).decode(errors="replace") for fd in (out_fd, err_fd))
        return Done(code, out, err, time.monotonic() - begin, timed_out)

    def pipe(self):
        """Of the case's user, who may open it again by name."""
        ends = os.pipe()
        if os.getuid() == 0:
            for fd in ends:
                os.fchown(fd, self.own_uid, self.own_uid)
        return ends

    @staticmethod
    def _read(fd, into, final=False):
        try:
            piece = os.read(fd, 1 << 16)
        except BlockingIOError:
            return not final
        into.append(piece)
        return bool(piece)

    def spawn(self, argv, **more):
        """A host process of the case's user, ended with the case."""
        child = self.start(self.as_user() + argv, marked=False, **more)
        self.children.append(child)
        return child

    # -- processes ---------------------------------------------------------------------------------------------------

    def processes(self):
        """Whoever carries the case's mark in environment or arguments."""
        mark, found = self.mark.encode(), []
        for name in os.listdir("/proc"):
            if not name.isdigit() or name in OLD_PIDS:
                continue
            try:
                with open(f"/proc/{name}/environ", "rb") as f:
                    text = f.read()
                with open(f"/proc/{name}/cmdline", "rb") as f:
                    text += f.read()
                with open(f"/proc/{name}/stat", "rb") as f:
                    state = f.read().rsplit(b")", 1)[1].split()[0]
            except OSError:
                continue
            if mark in text and state not in b"ZX":
                found.append(int(name))
        return found

    def survivors(self, within):
        """Whoever is left after that long. Nobody only if two looks say so: one can fall between a fork and an exit."""
        end, empty = time.monotonic() + within, 0
        while True:
            found = self.processes()
            empty = 0 if found else empty + 1
            if empty == 2 or (found and time.monotonic() > end):
                return [f"{pid} {self.name_of(pid)}" for pid in found]
            time.sleep(0.03)

    @staticmethod
    def name_of(pid):
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as f:
                return f.read().strip()
        except OSError:
            return "?"

    @staticmethod
    def kill(pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass

    def wait_for(self, path, seconds=5.0):
        end = time.monotonic() + seconds
        while not os.path.exists(path) and time.monotonic() < end:
            time.sleep(0.02)
        return os.path.exists(path)

    def start_victim(self):
        """It reads its questions from a pipe and tells about itself."""
        child = subprocess.Popen(self.as_user() + [self.tools.helper, "victim", self.host_dir + "/victim"],
                                 env=self.environment(marked=False), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 start_new_session=True, cwd=self.host_dir)
        self.children.append(child)
        self.victim = child.stdout.readline().decode().split()
        self.victim_process = child

    def ask(self):
        try:
            self.victim_process.stdin.write(b"?\n")
            self.victim_process.stdin.flush()
            ready, _, _ = select.select([self.victim_process.stdout], [], [], 3)
            return self.victim_process.stdout.readline().decode().strip() if ready else "no answer"
        except BrokenPipeError:
            return "dead"

    # -- servers and terminals -----------------------------------------------------------------------------------------

    def serve(self, name, kind=socket.SOCK_STREAM):
        """A host server that answers a byte, hands over a writable descriptor, and records that it was reached."""
        server = socket.socket(socket.AF_UNIX, kind)
        server.bind(name)
        if name[0] != "\0":
            os.chmod(name, 0o666)
        reached = self.host_dir + "/reached"

        def answer():
            while True:
                try:
                    peer = None
                    if kind == socket.SOCK_STREAM:
                        peer, _ = server.accept()
                    elif not server.recv(16):
                        return
                except OSError:
                    return
                with open(reached, "a", encoding="utf-8") as f:
                    f.write("reached\n")
                if peer:
                    self._answer(peer)

        if kind == socket.SOCK_STREAM:
            server.listen(4)
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()

        def close():
            server.shutdown(socket.SHUT_RDWR)       # wakes the thread
            thread.join(1)
            server.close()
        self.closers.append(close)

    def _answer(self, peer):
        with open(self.host_dir + "/given", "a", encoding="utf-8") as given:
            socket.send_fds(peer, [b"x"], [given.fileno()])
        peer.close()

    def open_tty(self):
        self.tty_master, self.tty_fd = os.openpty()
        self.tty_name = os.ttyname(self.tty_fd)
        if os.getuid() == 0:
            os.chown(self.tty_name, self.own_uid, -1)
        settings = termios.tcgetattr(self.tty_fd)
        settings[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(self.tty_fd, termios.TCSANOW, settings)
        self.closers.append(lambda: (os.close(self.tty_master), os.close(self.tty_fd)))

    def typed(self):
        """How many bytes wait to be read by whoever reads this terminal next."""
        return struct.unpack("i", fcntl.ioctl(self.tty_fd, termios.FIONREAD, b"\0" * 4))[0]

    def expected(self):
        return self.case.kind(self.mode)

    def must_refuse(self):
        return self.expected() == REFUSED

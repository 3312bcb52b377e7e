#!/usr/bin/env python3
"""Random commands against the sandbox, judged from outside as the cases are. See README.md beside this file.

  generate.py --agent build/release/acp-agent --helper build/release/attack [--runner R] [--minutes M | --seconds S]
              [--seed N] [--jobs N]
  generate.py … --seed N --runner R --world W [--verbose]    that world again, in the same order
  generate.py … --baseline                                   unconfined, as an ordinary user: does it find anything?

A world is a set of folders and host processes, and some twenty commands one after the other: what a call leaves in the
workspace is there for the next. The seed and the number of the world settle its commands. After each one
everything outside is compared with what it was. A finding is tried again alone, then with what came before, and cut down.
"""
import argparse
import collections
import ctypes
import dataclasses
import glob
import multiprocessing
import os
import pwd
import random
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import known                                                        # noqa: E402
from case import READ_ONLY, WORKSPACE_WRITE, describe, difference, refused, tree      # noqa: E402
from grammar import Grammar                                         # noqa: E402
from paths import came, listened_fifo                               # noqa: E402
from world import Place, Tools, World                               # noqa: E402

RUNNERS, USERS = ("bwrap", "landlock"), ("root", "ordinary")
COMMANDS = 20            # in one world
PATIENCE = 3.5           # seconds; then the agent is told to end
GRACE = 6.0              # within which it has to
MOST_SHOWN = 40          # different findings of one worker
MOST_TRIES = 40          # to cut one down
NEST = "/_" * 8          # between /var/tmp and a world: no chain of `..` gets out of it
TOOLS = (".vscode", ".idea", ".envrc", ".mcp.json")
GIT = ("hooks", "config", "config.worktree", "commondir")
PRIORITIES = {"nice": "renice-host-process", "cpus": "pin-host-process", "policy": "schedule-host-process",
              "ioprio": "io-priority-of-host-process"}


@dataclasses.dataclass(frozen=True)
class Finding:
    kind: str
    text: str

    def signature(self):
        return self.kind + ": " + re.sub(r"\d+|'[^']*'|->.*", "", self.text)


class Generated(World):
    """One world, and how it was."""

    def __init__(self, base, place, tools, rng):
        limits = ["prlimit", "--fsize=1048576", "--core=0", "--cpu=20", "--nproc=600"]
        if place.runner == "none":
            limits += ["sh", "-c", '"$@"; exit $?', "parent"]       # whom a command may kill
        case = refused("generated", "", None, victim=True, limit=20.0, setup=lambda w: w.furnish(rng), wrap=lambda w: limits,
                       env=lambda w: {"CALLS": os.path.join(os.path.dirname(tools.helper), "calls.py")})
        super().__init__(base, case, place, tools)
        self.unique = base.split("/")[3].removeprefix("acp-generate-") + "-" + os.path.basename(base)
        self.mark = "mark-" + self.unique
        self.shared = []         # writable, though not in the workspace

    # -- what is there -------------------------------------------------------------------------------------------------

    def furnish(self, rng):
        out, ws = self.out, self.ws
        for folder in (out + "/deep/a", out + "/secret", ws + "/d", ws + "/sub", self.base + "/state"):
            os.makedirs(folder)
        for path, text, mode in ((out + "/d/x", "ORIG\n", 0o644), (out + "/deep/a/b", "ORIG\n", 0o666),
                                 (out + "/ro", "ORIG\n", 0o444), (out + "/suid", "ORIG\n", 0o4755),
                                 (out + "/secret/k", "ORIG\n", 0o600), (self.home + "/.bashrc", "ORIG\n", 0o644),
                                 (ws + "/d/x", "MINE\n", 0o644), (ws + "/d/f", "MINE\n", 0o644)):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            os.chmod(path, mode)
        for link, to in ((out + "/l", "f"), (out + "/dl", "d"), (ws + "/lf", out + "/f"), (ws + "/ld", out), (ws + "/lw", "d"),
                         (ws + "/lc", "/proc/self/cwd"), (ws + "/lp", "/proc/self/root" + out)):
            os.symlink(to, link)
        os.mkfifo(ws + "/fifo")
        os.setxattr(out + "/d", "user.mark", b"1")
        self.bound(out + "/sock")
        if rng.random() < 0.7:
            self.repository(ws + "/.git")
        elif rng.random() < 0.5:
            self.worktree()
        for name in TOOLS:
            if rng.random() < 0.4:
                self.tool(os.path.join(ws, name))
        os.chmod(out + "/secret", 0o700)
        for folder, folders, files in os.walk(self.base):
            for name in [folder] + [os.path.join(folder, f) for f in files + folders]:
                os.lchown(name, self.own_uid, self.own_uid)
        os.chmod(out + "/suid", 0o4755)                             # which a change of owner took away
        listened_fifo(self)
        self.serve("\0attack-" + self.unique)

    @staticmethod
    def bound(path):
        import socket
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path)

    @staticmethod
    def repository(path):
        for folder in ("hooks", "objects/pack", "refs/heads", "info"):
            os.makedirs(path + "/" + folder)
        for name, text in (("HEAD", "ref: refs/heads/main\n"), ("config", "[core]\n\trepositoryformatversion = 0\n"),
                           ("hooks/pre-commit", "#!/bin/sh\n")):
            with open(path + "/" + name, "w", encoding="utf-8") as f:
                f.write(text)

    def worktree(self):
        """The workspace is one of two checkouts of a repository that lies outside: parts of that are writable then."""
        main = self.base + "/main/.git"
        self.repository(main)
        for name in ("ws", "other"):
            os.makedirs(f"{main}/worktrees/{name}")
            for file, text in (("HEAD", "ref: refs/heads/main"), ("commondir", "../.."),
                               ("gitdir", f"{self.base}/{name}/.git")):
                with open(f"{main}/worktrees/{name}/{file}", "w", encoding="utf-8") as f:
                    f.write(text + "\n")
        os.mkdir(main + "/logs")
        with open(self.ws + "/.git", "w", encoding="utf-8") as f:
            f.write(f"gitdir: {main}/worktrees/ws\n")
        own = "/worktrees" if self.runner == "bwrap" else "/worktrees/ws"
        self.shared = [main + part for part in ("/objects", "/refs", "/logs", own)]

    @staticmethod
    def tool(path):
        if path.endswith((".vscode", ".idea")):
            os.mkdir(path)
            path += "/tasks.json"
        with open(path, "w", encoding="utf-8") as f:
            f.write("{}\n")

    # -- one command ---------------------------------------------------------------------------------------------------

    def attempt(self, command):
        """Findings of this one command."""
        self.mode = command.mode
        self.look()
        cwd = self.path(command.cwd)
        child = self.start(self.argv(["bash", "-c", command.text()]), cwd=cwd if os.path.isdir(cwd) else self.ws,
                           stdin=command.stdin and self.path(command.stdin))
        begin = time.monotonic()
        ended = self.wait(child, command.end)
        self.seconds = time.monotonic() - begin
        found = [] if ended else [Finding("hang", f"the agent was told to end and did not within {GRACE:.0f} s")]
        killed = "KILL" in command.end or not ended
        self.code = child.returncode
        within = 3.0 if killed else 0.4
        left = sorted(set(self.survivors(within) + self.strays(within)))
        if left:
            found.append(Finding("process", f"still running: {' '.join(left)}"))
            for pid in self.processes() + [int(stray.split()[0]) for stray in left]:
                self.kill(pid)
        shutil.rmtree(f"{self.ws}/{'x' * 250}", ignore_errors=True)     # too deep to be compared
        try:
            return found + [finding for finding in self.compare(command) if finding]
        except OSError as error:                                    # such as a name that went away meanwhile
            return found + [Finding("judge", f"it cannot be told what happened: {error}")]

    @staticmethod
    def wait(child, end):
        """Whether it ended: by itself, as `end` says, or when it was told to."""
        pidfd = os.pidfd_open(child.pid)
        poller = select.poll()
        poller.register(pidfd, select.POLLIN)
        ended = bool(poller.poll(end[1] if end else PATIENCE * 1000))
        if not ended:
            child.send_signal(signal.SIGKILL if "KILL" in end else signal.SIGTERM)
            ended = bool(poller.poll(GRACE * 1000))
        if not ended:
            child.kill()
        child.wait()
        os.close(pidfd)
        return ended

    def strays(self, within):
        """Whoever became our child, because all above it ended: also without the mark."""
        end = time.monotonic() + within
        while (found := self.orphans()) and time.monotonic() < end:
            time.sleep(0.03)
        return found

    def orphans(self):
        mine, found = {child.pid for child in self.children}, []
        for listing in glob.glob("/proc/self/task/*/children"):
            with open(listing, encoding="utf-8") as f:
                for pid in {int(word) for word in f.read().split()} - mine:
                    try:
                        if os.waitpid(pid, os.WNOHANG)[0] == 0:
                            found.append(f"{pid} {self.name_of(pid)}")
                    except ChildProcessError:
                        pass
        return found

    # -- before and after ----------------------------------------------------------------------------------------------

    def surroundings(self):
        """All of the world but what the command may write."""
        found = {self.base: describe(self.base)}
        for name in os.listdir(self.base):
            if name != "ws":
                found.update(tree(os.path.join(self.base, name)))
        if self.mode == READ_ONLY:
            return found
        return {path: what for path, what in found.items()
                if not any((path + "/").startswith(free + "/") for free in self.shared)}

    def guarded(self):
        """Protected paths that are there, and names that are not. One that is, or lies behind, a link is a declared limit;
        a .git of which nothing is there to be kept is a new repository, which is the command's."""
        kept, absent = [], []
        places = [os.path.join(self.ws, name) for name in TOOLS]
        git = [os.path.join(self.ws, ".git", name) for name in GIT]
        folder = os.path.isdir(self.ws + "/.git") and not os.path.islink(self.ws + "/.git")
        if folder and any(os.path.lexists(path) for path in git):
            places += git
        elif os.path.isfile(self.ws + "/.git"):
            places.append(self.ws + "/.git")
            if self.shared:                                         # whose own `.git` files are out of reach, so this stays
                places += glob.glob(self.base + "/main/.git/worktrees/*/commondir")
        for path in places:
            if os.path.realpath(path) == path:
                (kept if os.path.lexists(path) else absent).append(path)
        return kept, absent

    def look(self):
        self.before = self.surroundings()
        self.before_ws = tree(self.ws)
        kept, self.absent = self.guarded()
        self.kept = {path: tree(path) for path in kept}
        self.victim_before = self.victim_state()
        self.mounts_before = self.mounts()
        self.null_before = self.null()
        self.temporary = set(glob.glob(f"/tmp/{self.unique}*"))

    def limit(self, name):
        """Whether a case is known not to hold here."""
        return known.entry_for(name, dataclasses.replace(self.place, mode=self.mode))

    def victim_state(self):
        state = self.ask()
        for word, case in PRIORITIES.items():
            if self.limit(case):
                state = re.sub(rf" {word}=-?\d+", "", state)
        for name in ("oom_score_adj", "coredump_filter", "limits"):
            try:
                with open(f"/proc/{self.victim[0]}/{name}", encoding="utf-8") as f:
                    state += "\n" + f.read()
            except OSError:
                state += "\ngone"
        return state

    @staticmethod
    def null():
        info = os.stat("/dev/null")
        return f"{info.st_mode:o} {info.st_uid}:{info.st_gid}"

    def mounts(self):
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            return sorted(line.split()[4] for line in f if self.base + "/" in line)

    def compare(self, command):
        yield self.differs("outside", self.before, self.surroundings(), self.out)
        if self.mode == READ_ONLY:
            yield self.differs("workspace", self.before_ws, tree(self.ws), self.ws)
            for path in set(glob.glob(f"/tmp/{self.unique}*")) - self.temporary:
                yield Finding("temporary", f"{path} appeared")
        yield from self.compare_protected(command)
        state = self.victim_state()
        if state != self.victim_before:
            lines = zip(self.victim_before.split("\n"), state.split("\n"))
            yield Finding("victim", next(f"{before} -> {after}" for before, after in lines if before != after))
        if self.mounts() != self.mounts_before:
            yield Finding("mount", f"{self.mounts()}")
        if came(self.note["fifo"]):
            yield Finding("fifo", "a host program read what was written")
        yield from self.compare_names(command)
        for path in glob.glob(f"/dev/shm/*{self.unique}*") + glob.glob(f"/var/tmp/*{self.unique}*"):
            yield Finding("outside", f"{path} appeared")
        if self.null() != self.null_before:
            yield Finding("outside", f"/dev/null: mode and owner {self.null_before} -> {self.null()}")

    @staticmethod
    def differs(kind, before, after, top):
        text = difference(before, after, top)
        return Finding(kind, text) if text else None

    def compare_protected(self, command):
        if self.mode != WORKSPACE_WRITE:
            return
        for path, before in self.kept.items():
            if self.runner == "landlock":                           # keeps nothing read-only inside
                break
            yield self.differs("protected", before, tree(path), self.ws)
        if command.races():                                         # for a name that is not there: a declared limit
            return
        for path in self.absent:
            if self.runner == "landlock" and "/.git/" in path:
                continue
            if os.path.lexists(path):
                yield Finding("absent", os.path.relpath(path, self.base) + " was made")

    def compare_names(self, command):
        """Names of no file system: sockets, System V objects, message queues, keys."""
        text, mine = command.text(), self.unique.encode()
        with open("/proc/net/unix", "rb") as f:
            for line in f:
                name = line.rstrip(b"\n").split(b" ")[-1]
                if mine in name and name.startswith(b"@") and name != b"@attack-" + mine:
                    yield Finding("socket", f"{name.decode(errors='replace')} is still bound")
        key = str(ctypes.c_int(self.number).value)
        for kind, flag in (("shm", "-M"), ("msg", "-Q"), ("sem", "-S")):
            if "$NUMBER" in text and not self.limit("object-left-" + kind):
                with open("/proc/sysvipc/" + kind, encoding="utf-8") as f:
                    if any(line.split()[0] == key for line in f):
                        yield Finding("object", f"a System V object ({kind}) was left")
                        subprocess.run(["ipcrm", flag, key], check=False)
        for word, find, drop, case in ((' mq "', "mq-find", "mq-drop", "queue-left"),
                                       ("add-key", "find-key", "drop-key", "key-left-behind")):
            name = ("/" if "mq" in find else "") + self.unique
            if word in text and not self.limit(case) and self.helper(find, name) == 0:
                yield Finding("object", f"{name} was left ({find})")
                self.helper(drop, name)

    def helper(self, *words):
        return subprocess.run(self.as_user() + [self.tools.helper, *words], capture_output=True, check=False).returncode

    def close(self):
        """Nothing is removed through a mount that a command left."""
        for path in reversed(self.mounts()):
            subprocess.run(["umount", "-l", path], check=False)
        for path in glob.glob(f"/tmp/{self.unique}*"):
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.remove(path)
        if self.runner != "bwrap":
            for flag in ("-M", "-Q", "-S"):
                subprocess.run(self.as_user() + ["ipcrm", flag, str(self.number)], stderr=subprocess.DEVNULL, check=False)
            self.helper("mq-drop", "/" + self.unique)
        if not self.mounts():
            super().close()


class Worker:
    """Every world whose number is its own, until the time is over."""

    def __init__(self, suite, number):
        self.suite, self.number = suite, number
        self.counts, self.codes, self.seen = (collections.Counter() for _ in range(3))
        self.shapes = set()
        self.built = 0

    def world(self, index):
        rng = random.Random(f"{self.suite.options.seed}/{index}")
        user = self.suite.users[rng.randrange(len(self.suite.users))]
        self.built += 1
        base = f"{self.suite.base}{NEST}/{self.suite.runner[0]}{index}-{self.number}-{self.built}"
        return Generated(base, Place(self.suite.runner, WORKSPACE_WRITE, user), self.suite.tools, rng)

    def commands(self, index):
        grammar = Grammar(random.Random(f"{self.suite.options.seed}/{index}/commands"))
        return [grammar.command() for _ in range(COMMANDS)]

    def run(self, index):
        commands = self.commands(index)
        world = self.world(index)
        try:
            world.build()
            for n, command in enumerate(commands):
                if self.suite.over():
                    return
                found = world.attempt(command)
                self.counts[command.mode] += 1
                self.codes["refused to run" if world.code == 5 else "ran"] += 1
                if self.suite.options.verbose:
                    print(f"# {n} {command.mode} {command.cwd} {command.stdin} {command.end} -> {world.code}, "
                          f"{world.seconds:.1f} s\n{command.text()}", flush=True)
                for finding in found:
                    self.report(index, world.place, commands, n, finding)
                if any(finding.kind not in ("absent", "protected", "process") for finding in found):
                    return
        finally:
            world.close()

    # -- findings ------------------------------------------------------------------------------------------------------

    def report(self, index, place, commands, n, finding):
        self.counts["findings"] += 1
        self.seen[finding.signature()] += 1
        if self.seen[finding.signature()] > 20 or len(self.shapes) >= MOST_SHOWN:
            return
        sequence, again = self.reduced(index, commands[:n + 1], finding)
        shape = finding.signature() + " | " + " || ".join(command.shape() for command in sequence)
        if shape in self.shapes:
            return
        self.shapes.add(shape)
        text = [f"FINDING {finding.kind}: {finding.text}",
                f"  seed {self.suite.options.seed} runner {place.runner} user {place.user} world {index} command {n}: {again}"]
        for command in sequence:
            text.append(f"  {command.mode}, in {command.cwd}" + (f", standard input {command.stdin}" if command.stdin else "")
                        + (f", ended by {command.end[0]} after {command.end[1]} ms" if command.end else "") + ":")
            text += ["    " + line for line in command.text().split("\n")]
        print("\n".join(text), flush=True)

    def shows(self, index, sequence, finding):
        """Whether the last command of the sequence has it, in a new world."""
        world = self.world(index)
        try:
            world.build()
            for command in sequence[:-1]:
                world.attempt(command)
            return any(found.signature() == finding.signature() for found in world.attempt(sequence[-1]))
        finally:
            world.close()

    def reduced(self, index, sequence, finding):
        """(the shortest sequence that has it, what is known of it)."""
        tries = MOST_TRIES
        if self.shows(index, sequence[-1:], finding):
            sequence, again = sequence[-1:], "happens again alone"
        elif self.shows(index, sequence, finding):
            again = "happens again after what came before"
        else:
            return sequence[-1:], "did not happen again; the whole command"
        at = len(sequence) - 2
        while at >= 0 and tries > 0:                                # whole commands before it
            shorter, tries = sequence[:at] + sequence[at + 1:], tries - 1
            if self.shows(index, shorter, finding):
                sequence = shorter
            at -= 1
        for n in reversed(range(len(sequence))):                    # and pieces of each
            needed = 0                                              # of those it could do without, from the end
            while tries > 0 and needed < len(less := list(sequence[n].smaller())):
                shorter, tries = sequence[:n] + [less[needed]] + sequence[n + 1:], tries - 1
                if self.shows(index, shorter, finding):
                    sequence = shorter
                else:
                    needed += 1
        return sequence, again


class Suite:
    def __init__(self, options, runner):
        self.options, self.runner = options, runner
        self.base = tempfile.mkdtemp(prefix="acp-generate-", dir="/var/tmp")
        os.chmod(self.base, 0o711)
        os.makedirs(self.base + NEST)
        self.tools = self.make_tools()
        self.users = [user for user in USERS if options.user in (None, user) and (user == "ordinary" or os.getuid() == 0)
                      and (user == "ordinary" or runner != "none")]
        self.end = time.monotonic() + options.seconds

    def over(self):
        return self.options.world is None and time.monotonic() > self.end

    def make_tools(self):
        """Copies that every user may run."""
        o, folder = self.options, self.base + "/bin"
        os.mkdir(folder)
        uid = pwd.getpwnam("nobody").pw_uid if o.uid is None else o.uid
        helper = shutil.copy(o.helper, folder + "/attack")
        shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "calls.py"), folder)
        agent = list(o.agent)
        readable = os.getuid() != 0 or subprocess.run(
            ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "test", "-x", agent[-1]],
            check=False).returncode == 0
        if not readable:
            for name in (os.path.basename(agent[-1]), "landlock-run", "call-init"):
                shutil.copy(os.path.join(os.path.dirname(agent[-1]), name), folder)
            agent[-1] = os.path.join(folder, os.path.basename(agent[-1]))
        for name in os.listdir(folder):
            os.chmod(os.path.join(folder, name), 0o755)
        os.chmod(folder, 0o755)
        return Tools(agent, "", helper, uid)

    def impossible(self):
        """None, or why nothing can run here: a command must at least write the workspace."""
        world = Worker(self, 99).world(0)
        try:
            world.build()
            child = world.start(world.argv("echo > ran"), cwd=world.ws, stderr=subprocess.PIPE)
            _, said = child.communicate(timeout=20)
            return None if os.path.exists(world.ws + "/ran") else said.decode(errors="replace").strip() or "nothing was written"
        finally:
            world.close()

    def work(self, number, results):
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)                     # a subreaper: what nobody ends becomes our child
        worker = Worker(self, number)
        try:
            if self.options.world is not None:
                worker.run(self.options.world)
            index = number
            while self.options.world is None and not self.over():
                worker.built = 0
                worker.run(index)
                index += self.options.jobs
        finally:
            results.put((dict(worker.counts), dict(worker.codes), dict(worker.seen)))

    def run(self):
        why = self.impossible()
        if why:
            print(f"SKIP {self.runner}: {why}")
            return 0, None
        results = multiprocessing.Queue()
        jobs = 1 if self.options.world is not None else self.options.jobs
        workers = [multiprocessing.Process(target=self.work, args=(number, results)) for number in range(jobs)]
        for worker in workers:
            worker.start()
        counts, codes, seen = collections.Counter(), collections.Counter(), collections.Counter()
        for _ in workers:
            a, b, c = results.get()
            counts.update(a)
            codes.update(b)
            seen.update(c)
        for worker in workers:
            worker.join()
        for signature, times in seen.most_common():
            print(f"{self.runner}: {times} times {signature}")
        broken = sum(worker.exitcode != 0 for worker in workers)
        print(f"{self.runner}: {counts[READ_ONLY] + counts[WORKSPACE_WRITE]} commands ({counts[READ_ONLY]} read-only), "
              f"{codes['refused to run']} of them refused to run, {counts['findings']} findings"
              + (f", {broken} workers broke" if broken else ""), flush=True)
        return counts["findings"] + broken, counts[READ_ONLY] + counts[WORKSPACE_WRITE]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", type=shlex.split, required=True, help="the binary, with a wrapper if need be")
    parser.add_argument("--helper", required=True, help="the built attack.c")
    parser.add_argument("--runner", choices=RUNNERS, help="default: one after the other")
    parser.add_argument("--user", choices=USERS)
    parser.add_argument("--uid", type=int, help="of the ordinary user (default: nobody's), when started by root")
    parser.add_argument("--minutes", type=float, help="for each runner")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--world", type=int, help="this one only")
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1))
    parser.add_argument("--baseline", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="every command")
    options = parser.parse_args()
    options.agent[-1] = os.path.abspath(options.agent[-1])
    options.seconds = options.minutes * 60 if options.minutes else options.seconds
    return options


def main():
    options = arguments()
    print(f"seed {options.seed}", flush=True)
    failed, ran = 0, False
    for runner in ("none",) if options.baseline else (options.runner,) if options.runner else RUNNERS:
        suite = Suite(options, runner)
        try:
            findings, tried = suite.run()
            failed += findings
            ran = ran or bool(tried)
        finally:
            shutil.rmtree(suite.base, ignore_errors=True)
    if not ran:
        print("FAIL nothing ran: no confining runner works here")
    return 1 if failed or not ran else 0


if __name__ == "__main__":
    sys.exit(main())

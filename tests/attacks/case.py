"""What a case is, and the words its files are written in.

A case says what is prepared on the host, what runs inside, and how the host sees afterwards whether the effect took
place. `refused`, `works`, `writes` and `decided` make cases; everything below them answers "did it happen?".
"""
import dataclasses
import fcntl
import os
import stat
import struct
import typing

REFUSED, WORKS, DECIDED = "must be refused", "must work", "decided by policy"
READ_ONLY, WORKSPACE_WRITE = "read-only", "workspace-write"
ROOT = "needs root"          # as an ordinary user nothing happens even when unconfined


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    kinds: dict                              # by mode
    run: str                                 # for bash -c, inside
    effect: typing.Callable                  # World -> falsy, or what took place
    setup: object = None                     # shell text or World -> None; on the host, as the case's user
    undo: object = None                      # World -> None; on the host, whatever happened
    needs: str = ""                          # why nothing may happen even when unconfined
    runners: tuple = ("bwrap", "landlock")
    users: tuple = ("root", "ordinary")
    modes: tuple = (READ_ONLY, WORKSPACE_WRITE)
    env: object = None                       # dict or World -> dict, added to what the agent is started with
    cwd: str = "ws"                          # below the case's folder
    root: object = None                      # World -> the --root given; None: the workspace
    wrap: object = None                      # World -> argv in front of the agent's
    stdin: str = ""                          # a file below the case's folder
    drive: object = None                     # World -> None: runs the agent itself, instead of one plain call
    via: str = "agent"                       # "launcher": landlock-run alone, without what the agent does before
    victim: bool = False                     # a host process of the same user: $VICTIM $ADDRESS $VICTIM_FD
    tty: bool = False                        # standard input is a terminal of the case's own
    spread: bool = False                     # whose processes they are makes no difference: one user a runner and mode
    alone: str = ""                          # cases with the same word do not run at the same time
    limit: float = 20.0                      # seconds a command may take
    program: str = ""                        # left out where it is not installed
    about: str = ""
    module: str = ""

    def kind(self, mode):
        return self.kinds[mode]


def _case(name, kinds, run, effect, more):
    if WORKS in kinds.values():
        more.setdefault("spread", True)
    return Case(name=name, kinds=kinds, run=run, effect=effect, **more)


def refused(name, run, effect=None, **more):
    """No effect in either mode. Without `effect`: nothing at all outside the workspace may differ, nor, in read-only
    mode, inside it."""
    return _case(name, dict.fromkeys((READ_ONLY, WORKSPACE_WRITE), REFUSED), run, effect or anything, more)


def works(name, run, effect, **more):
    return _case(name, dict.fromkeys((READ_ONLY, WORKSPACE_WRITE), WORKS), run, effect, more)


def writes(name, run, effect, **more):
    """Works with a writable workspace, refused without."""
    return _case(name, {READ_ONLY: REFUSED, WORKSPACE_WRITE: WORKS}, run, effect, more)


def decided(name, run, effect, about, **more):
    """Promised neither way; `about` says why."""
    return _case(name, dict.fromkeys((READ_ONLY, WORKSPACE_WRITE), DECIDED), run, effect, dict(more, about=about))


# -- did it happen? -------------------------------------------------------------------------------------------------

def describe(path):
    """All that a command could have changed of one file; access time excepted."""
    info = os.lstat(path)
    content, flags = b"", 0
    if stat.S_ISLNK(info.st_mode):
        content = os.readlink(path)
    elif stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode):
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOATIME)
        except PermissionError:
            fd = -1
        if fd >= 0:
            try:
                if stat.S_ISREG(info.st_mode):
                    content = os.read(fd, 1 << 20)
                flags = struct.unpack("i", fcntl.ioctl(fd, 0x80086601, b"\0" * 8)[:4])[0] & ~0x80000   # not EXTENTS
            except OSError:
                pass
            os.close(fd)
    try:
        attributes = {n: os.getxattr(path, n, follow_symlinks=False) for n in os.listxattr(path, follow_symlinks=False)}
    except OSError:
        attributes = {}
    return {"mode": oct(info.st_mode), "owner": (info.st_uid, info.st_gid), "links": info.st_nlink,
            "size": info.st_size, "device": info.st_rdev, "mtime": info.st_mtime_ns, "content": content, "flags": flags,
            "attributes": attributes, "ctime": info.st_ctime_ns}


def tree(top):
    found = {}
    pending = [top] if os.path.lexists(top) else []
    while pending:
        path = pending.pop()
        found[path] = describe(path)
        if os.path.isdir(path) and not os.path.islink(path) and os.access(path, os.R_OK | os.X_OK):
            pending += [os.path.join(path, name) for name in os.listdir(path)]
    return found


def difference(before, after, top):
    def name(path):
        return os.path.relpath(path, os.path.dirname(top))
    for path in sorted(after.keys() - before.keys()):
        return f"{name(path)} appeared"
    for path in sorted(before.keys() - after.keys()):
        return f"{name(path)} is gone"
    for path in sorted(before):
        changed = [key for key in before[path] if before[path][key] != after[path][key]]
        if changed:
            key = changed[0]
            return f"{name(path)}: {key} {str(before[path][key])[:40]} -> {str(after[path][key])[:40]}"
    return None


def outside(w):
    return difference(w.before_out, tree(w.out), w.out)


def inside(w):
    return difference(w.before_ws, tree(w.ws), w.ws)


def anything(w):
    return outside(w) or (inside(w) if w.mode == READ_ONLY else None)


def present(where):
    """`where` is below the case's folder, as in ws/new; or absolute, with {unique} for the case's own word."""
    def effect(w):
        path = w.path(where)
        return f"{where} is there" if os.path.lexists(path) else None
    return effect


def holds(where, text):
    def effect(w):
        try:
            with open(w.path(where), encoding="utf-8", errors="replace") as f:
                return f"{where} holds {text!r}" if text in f.read() else None
        except OSError:
            return None
    return effect


def prints(text):
    """The output itself is what was asked for: the whole of it, and exit code 0."""
    def effect(w):
        return w.done.code == 0 and w.done.out.strip() == text and f"printed {text}"
    return effect


def exits(code):
    def effect(w):
        return w.done.code == code and f"exit code {code}"
    return effect


def both(*effects):
    """All of them took place."""
    def effect(w):
        said = []
        for one in effects:
            said.append(one(w))
            if not said[-1]:
                return None
        return "; ".join(str(s) for s in said)
    return effect


def where_present(where, effect):
    """`effect` of a file that need not be there."""
    return both(present(where), effect)


def victim_changed(w):
    now = w.ask()
    return f"host process: {w.victim_before} -> {now}" if now != w.victim_before else None


def left_running(w):
    found = w.survivors(within=0.4)
    return f"still running: {found}" if found else None

"""What is known not to hold, in which places, and why; SECURITY.md names each reason.

An entry is inverted, not skipped: when the promise begins to hold there, the case fails until its name is removed here.
A reason that begins with "TO FIX:" is a defect, any other a declared limit.
"""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Known:
    reason: str
    cases: tuple
    runner: str = ""      # empty: any
    mode: str = ""
    user: str = ""
    sometimes: bool = False   # a race, or not on every host: either outcome is the known one

    def where(self):
        return "/".join(part or "any" for part in (self.runner, self.mode, self.user))

    def passing(self):
        """A defect, or something that is being built: no limit that stays."""
        return self.reason.startswith("TO FIX:") or self.reason.endswith("(coming)")

    def at(self, place):
        return all(mine in ("", theirs) for mine, theirs in
                   ((self.runner, place.runner), (self.mode, place.mode), (self.user, place.user)))


NEWER = ("fchmodat2-inside", "fchmod-empty-path-inside", "setxattrat-inside", "removexattrat-inside", "file-setattr-inside")

GIT = tuple("git-" + name for name in (
    "attributes-planted", "configuration-by-command", "configuration-by-edit", "configuration-replaced",
    "folder-linked", "folder-removed", "folder-renamed-and-made-anew", "hook-edited", "hook-linked", "hook-planted",
    "hook-replaced", "hooks-folder-exchanged", "hooks-folder-linked", "hooks-folder-replaced", "nested-repository-hook", "submodule-to-be", "closed-and-opened-again", "bare-hook",
    "pointer-file-changed", "submodule-hook", "worktree-configuration"))
LISTED = tuple(f"tool-file-{name}-edited" for name in ("envrc", "idea", "mcp", "vscode-settings", "vscode-tasks")) + (
    "tool-folder-renamed-and-made-anew",)
UNLISTED = tuple(f"tool-file-{name}-edited" for name in ("claude", "cursor", "devcontainer", "husky"))
ALLOWED = ("control-socket-display", "control-socket-ssh-agent")

KNOWN = (
    Known("newer calls for metadata answer ENOSYS inside too, as on an older kernel; programs fall back", NEWER,
          mode="workspace-write"),

    Known("Landlock alone keeps nothing read-only inside a writable folder", GIT + LISTED + (
        "configuration-when-home-is-the-workspace",), "landlock", "workspace-write"),
    Known("the rest of `.git` is the command's to change, or git could not work",
          ("git-attributes-planted", "git-folder-removed", "git-pointer-file-changed"), "bwrap", "workspace-write"),
    Known("nested repositories are not searched for hooks", ("git-nested-repository-hook",), "bwrap", "workspace-write"),
    Known("other tools' configuration is protected only where `protect` names it", UNLISTED, mode="workspace-write"),
    Known("a home folder given as the workspace is the command's to write", ("startup-files-when-home-is-the-workspace",),
          mode="workspace-write"),

    Known("ssh-agent and X11 are let through unless `sockets` denies them", ALLOWED),
    Known("Landlock alone has no say over System V objects and message queues",
          ("object-left-shm", "object-left-msg", "object-left-sem", "memory-of-a-program-written", "queue-left",
           "queue-of-a-program-removed"), "landlock"),
    Known("Landlock alone leaves priorities of the user's other processes reachable",
          ("io-priority-of-host-process", "pin-host-process", "renice-host-process", "schedule-host-process"), "landlock",
          user="ordinary"),
    Known("Landlock alone has no process namespace: what call-init would have ended lives on if somebody kills call-init itself",
          ("reaper-killed-leaves-nothing",), "landlock"),

    Known("Landlock alone has no private terminals", ("terminal-by-script", "terminal-changed", "terminal-of-ones-own"), "landlock"),
    Known("Landlock alone has no private shared memory", ("shared-memory", "shared-memory-changed", "python-multiprocessing"), "landlock"),
    Known("bwrap takes 9000 arguments at most", ("many-arguments",), "bwrap"),
    Known("/proc/self cannot be written, so no user namespace either", ("own-name", "user-namespace")),
)


def entry_for(name, place):
    return next((entry for entry in KNOWN if name in entry.cases and entry.at(place)), None)


def places(name):
    return [(entry.where(), entry.reason) for entry in KNOWN if name in entry.cases]


def faults(names):
    return [f"known.py names a case that does not exist: {case}" for entry in KNOWN for case in entry.cases
            if case not in names]

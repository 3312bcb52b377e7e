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


# -- metadata ----------------------------------------------------------------------------------------------------------

NEWER = ("fchmodat2-inside", "fchmod-empty-path-inside", "setxattrat-inside", "removexattrat-inside", "file-setattr-inside")
FLAGS = ("set-flags-inside", "set-flags-high-inside", "set-fsxattr-inside", "set-version-inside")
DEV_NULL = ("chmod-of-dev-null", "chmod-of-standard-input")

# -- inside the workspace ----------------------------------------------------------------------------------------------

DEFAULTS = "protected by the default list (coming)"
GIT = tuple("git-" + name for name in (
    "attributes-planted", "configuration-by-command", "configuration-by-edit", "configuration-replaced", "folder-exchanged",
    "folder-linked",
    "folder-removed", "folder-renamed-and-made-anew", "hook-edited", "hook-linked", "hook-planted", "hook-replaced",
    "hooks-folder-exchanged", "hooks-folder-linked", "hooks-folder-replaced", "nested-repository-hook", "pointer-file-changed",
    "submodule-hook", "worktree-configuration"))
TOOL_FILES = tuple(f"tool-file-{name}-edited" for name in (
    "claude", "cursor", "devcontainer", "envrc", "husky", "idea", "mcp", "vscode-settings", "vscode-tasks")) + (
    "tool-folder-planted", "tool-folder-renamed-and-made-anew")
SOCKETS = tuple("control-socket-" + name for name in ("display", "docker", "podman", "service-manager", "session-bus",
                                                      "ssh-agent"))

KNOWN = (
    Known("newer calls for metadata answer ENOSYS inside too, as on an older kernel; programs fall back", NEWER,
          mode="workspace-write"),
    Known("TO FIX: ext4's own number for the generation of a file (_IOW('f', 4, long)) passes the filter",
          ("set-version-ext4",), "landlock"),
    Known("TO FIX: ext4's own number for the generation of a file (_IOW('f', 4, long)) passes the filter",
          ("set-version-ext4-inside",),
          "landlock", "read-only"),
    Known("TO FIX: an ioctl sets an encryption policy, or verity, where the file system has them", ("encryption-policy", "verity"),
          "landlock", sometimes=True),
    Known("TO FIX: on btrfs an ioctl makes subvolumes and snapshots in a folder that may only be read", ("make-subvolume",),
          "landlock", sometimes=True),
    Known("Landlock alone cannot tell where a flag would be set: not in the workspace either", FLAGS, "landlock",
          "workspace-write"),
    Known("TO FIX: root inside bwrap changes the mode of the host's /dev/null", DEV_NULL, "bwrap", user="root"),
    Known("TO FIX: metadata of a file given as standard input", ("standard-input-mode", "standard-input-attribute"), "bwrap"),

    Known(DEFAULTS, GIT, mode="workspace-write"),
    Known(DEFAULTS, TOOL_FILES, mode="workspace-write"),
    Known("TO FIX: the agent's own binary in the workspace can be replaced, its helpers cannot",
          ("agent-in-the-workspace-replaced",),
          "bwrap", "workspace-write"),
    Known("TO FIX: the agent's own composition can be planted when the home folder is the workspace",
          ("configuration-when-home-is-the-workspace",), mode="workspace-write"),
    Known("a home folder given as the workspace is the command's to write", ("startup-files-when-home-is-the-workspace",),
          mode="workspace-write"),

    Known("control sockets are masked by default (coming)", SOCKETS),
    Known("Landlock alone has no say over System V objects, message queues and keys",
          ("object-left-shm", "object-left-msg", "object-left-sem", "memory-of-a-program-written", "queue-left",
           "queue-of-a-program-removed",
           "key-left-behind", "key-of-the-user-removed"), "landlock"),
    Known("Landlock alone leaves limits and priorities of the user's other processes reachable", ("limit-host-process",),
          "landlock"),
    Known("Landlock alone leaves limits and priorities of the user's other processes reachable",
          ("io-priority-of-host-process", "pin-host-process", "renice-host-process", "schedule-host-process"), "landlock",
          user="ordinary"),
    Known("Landlock alone has no process namespace: what call-init would have ended lives on if somebody kills call-init itself",
          ("reaper-killed-leaves-nothing",), "landlock"),

    Known("Landlock alone has no private terminals", ("terminal-by-script", "terminal-of-ones-own"), "landlock"),
    Known("Landlock alone has no private shared memory", ("shared-memory", "python-multiprocessing"), "landlock"),
    Known("/proc/self cannot be written, so no user namespace either", ("own-name", "user-namespace")),
    Known("bwrap's user namespace has one user: nothing can be given to another", ("chown-to-another-inside",), "bwrap",
          "workspace-write"),
    Known("TO FIX: more arguments than bwrap takes (9000) are reported as a sandbox that is not available",
          ("many-arguments",), "bwrap"),
)


def entry_for(name, place):
    return next((entry for entry in KNOWN if name in entry.cases and entry.at(place)), None)


def places(name):
    return [(entry.where(), entry.reason) for entry in KNOWN if name in entry.cases]


def faults(names):
    return [f"known.py names a case that does not exist: {case}" for entry in KNOWN for case in entry.cases
            if case not in names]

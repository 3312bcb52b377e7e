"""Descriptors that whoever started the agent left open, standard streams among them."""
import os
import time

from case import ROOT, both, decided, left_running, outside, refused, works

CASES = []
OPEN = 'exec 7>>"$1" 8<"$2" 9<"$3"; shift 3; exec "$@"'


def leaking(w):
    """7: a file to append to, 8: a folder, 9: a file to read. All outside."""
    return ["bash", "-c", OPEN, "leaking", w.out + "/f", w.out, w.out + "/g"]


ATTACKS = (
    ("write", '"$ATTACK" fd-write 7'),
    ("cut", '"$ATTACK" fd-truncate 7'),
    ("create-below-folder", '"$ATTACK" fd-openat 8 new'),
    ("remove-below-folder", '"$ATTACK" fd-unlinkat 8 f'),
    ("change-directory", '"$ATTACK" fd-chdir 8 new'),
    ("proc-self-fd", "echo PWN > /proc/self/fd/8/new"),
    ("reopen-for-writing", "echo PWN > /proc/self/fd/9"),
    ("write-by-shell", "echo PWN >&7"),
    ("mode", '"$ATTACK" meta-fd fchmod 9'),
    ("attribute", '"$ATTACK" meta-fd fsetxattr 7'),
    ("flags", '"$ATTACK" meta-fd set-flags 8'),
)
for name, run in ATTACKS:
    CASES.append(refused("inherited-" + name, run, outside, wrap=leaking))
    CASES.append(refused("launcher-inherited-" + name, run, outside, wrap=leaking, via="launcher", runners=("landlock",)))


def observe(w, command="exec sleep 9"):
    """What the host sees of the command while it runs."""
    child = w.start(w.argv(command), cwd=w.ws)
    w.children.append(child)
    end, found = time.monotonic() + 5, None
    while found is None and time.monotonic() < end:
        found = next((pid for pid in w.processes() if w.name_of(pid) == "sleep"), None)
        time.sleep(0.02)
    if found is None:
        raise RuntimeError("the command did not start")
    with open(f"/proc/{found}/status", encoding="utf-8") as f:
        w.note["status"] = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    w.note["descriptors"] = {int(n): os.readlink(f"/proc/{found}/fd/{n}") for n in os.listdir(f"/proc/{found}/fd")}
    for pid in w.processes():
        w.kill(pid)


def more_descriptors(w):
    extra = {n: to for n, to in w.note["descriptors"].items() if n > 2}
    return extra and f"the command holds {extra}"


def capabilities(w):
    allowed = 0xfb                     # files and ids: DAC_OVERRIDE, CHOWN, FOWNER, FSETID, KILL, SETGID, SETUID
    held = {n: w.note["status"][n] for n in ("CapInh", "CapPrm", "CapEff", "CapAmb")
            if int(w.note["status"][n], 16) & ~allowed}
    return held and f"the command holds {held}"


def bounding(w):
    return int(w.note["status"]["CapBnd"], 16) & ~0xfb and "bounding set " + w.note["status"]["CapBnd"]


def users_of_the_host(w):
    return w.done.out.strip() in ("", os.readlink("/proc/self/ns/user")) and "the command is in the host's user namespace"


CASES += [
    refused("user-namespace-of-the-host", "readlink /proc/self/ns/user", users_of_the_host, runners=("bwrap",)),
    refused("descriptors-of-the-command", "", more_descriptors, wrap=leaking, drive=observe),
    refused("launcher-descriptors-of-the-command", "", more_descriptors, wrap=leaking, drive=observe, via="launcher",
            runners=("landlock",)),
    refused("new-privileges", "", lambda w: w.note["status"]["NoNewPrivs"] != "1" and "exec may gain privileges",
            drive=observe),
    refused("calls-unfiltered", "", lambda w: w.note["status"].get("Seccomp") != "2" and "no filter over system calls",
            drive=observe),
    refused("capabilities-held", "", capabilities, drive=observe, needs=ROOT),
    refused("capabilities-to-be-had", "", bounding, drive=observe, users=("root",)),
    refused("standard-input-reopened-for-writing", "echo PWN > /dev/stdin", outside, stdin="out/f"),
    refused("standard-input-mode", '"$ATTACK" meta-fd fchmod 0', outside, stdin="out/f"),
    refused("standard-input-attribute", '"$ATTACK" meta-fd fsetxattr 0', outside, stdin="out/f"),
    refused("standard-input-is-a-folder", '"$ATTACK" fd-openat 0 new', outside, stdin="out"),
    refused("standard-input-is-a-folder-to-go-to", '"$ATTACK" fd-chdir 0 new', outside, stdin="out"),
    refused("standard-input-is-a-folder-to-remove-from", '"$ATTACK" fd-unlinkat 0 f', outside, stdin="out"),
    decided("standard-output-is-a-file", "echo PWN; exec >&2; : ", lambda w: outside(w),
            "what the user redirects a command to is the command's to write",
            wrap=lambda w: ["bash", "-c", 'exec >>"$1"; shift; exec "$@"', "redirect", w.out + "/f"]),
    works("few-descriptors-allowed", "echo fine", both(lambda w: w.done.out == "fine\n" and "ran"),
          wrap=lambda w: ["bash", "-c", 'ulimit -n 64; exec "$@"', "few"]),
    works("standard-streams-closed", "echo x; exit 7", lambda w: w.done.code == 7 and not left_running(w) and "ran",
          wrap=lambda w: ["bash", "-c", 'exec 0<&- 1>&- 2>&-; exec "$@"', "closed"]),
]

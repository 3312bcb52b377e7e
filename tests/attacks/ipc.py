"""System V and POSIX objects that are no files, and terminals."""
import subprocess

from case import refused, works, prints
from kernel import as_user, read

CASES = []


def listed(kind):
    def effect(w):
        with open(f"/proc/sysvipc/{kind}", encoding="utf-8") as f:
            return any(line.split()[:1] == [str(w.number)] for line in f) and f"a {kind} object stays"
    return effect


def drop(letter):
    return lambda w: subprocess.run(["ipcrm", "-" + letter, str(w.number)], stderr=subprocess.DEVNULL, check=False)


for kind, letter in (("shm", "M"), ("msg", "Q"), ("sem", "S")):
    CASES.append(refused(f"object-left-{kind}", f'"$ATTACK" {kind} "$NUMBER"', listed(kind), undo=drop(letter)))

CASES += [
    refused("memory-of-a-program-written", '"$ATTACK" shm-write "$NUMBER"',
            lambda w: as_user(w, "shm-print", str(w.number)).stdout == "PWN" and "written",
            setup=lambda w: as_user(w, "shm", str(w.number)), undo=drop("M")),
    refused("queue-left", '"$ATTACK" mq "/$UNIQUE"', lambda w: as_user(w, "mq-find", "/" + w.unique).returncode == 0
            and "a queue stays",
            undo=lambda w: as_user(w, "mq-drop", "/" + w.unique)),
    refused("queue-of-a-program-written", '"$ATTACK" mq-send "/$UNIQUE"',
            lambda w: as_user(w, "mq-count", "/" + w.unique).stdout == "1" and "a message came",
            setup=lambda w: as_user(w, "mq", "/" + w.unique), undo=lambda w: as_user(w, "mq-drop", "/" + w.unique)),
    refused("queue-of-a-program-removed", '"$ATTACK" mq-drop "/$UNIQUE"',
            lambda w: as_user(w, "mq-find", "/" + w.unique).returncode != 0 and "it is gone",
            setup=lambda w: as_user(w, "mq", "/" + w.unique), undo=lambda w: as_user(w, "mq-drop", "/" + w.unique)),
]

# The command's standard input is a terminal, as in `acp-agent confine … -- bash` typed by hand.


def on_terminal(w):
    return [w.tools.helper, "on-tty", w.tty_name]


def typed(w):
    return w.typed() and f"{w.typed()} bytes wait at the terminal as if typed"


NO_TIOCSTI = "" if read("/proc/sys/dev/tty/legacy_tiocsti") == "1" else "needs dev.tty.legacy_tiocsti"
for name, op in (("terminal-typed-into", "type 0"), ("terminal-typed-into-by-high-bits", "type-high 0"),
                 ("terminal-typed-into-by-dev-tty", "type-tty")):
    CASES.append(refused(name, f'"$ATTACK" {op}', typed, tty=True, wrap=on_terminal, needs=NO_TIOCSTI))
    if op.endswith(" 0"):        # without the session of its own that the agent gives a command
        CASES.append(refused("launcher-" + name, f'"$ATTACK" {op}', typed, tty=True, wrap=on_terminal, needs=NO_TIOCSTI,
                             via="launcher", runners=("landlock",)))
CASES += [
    works("terminal-of-ones-own", """/usr/bin/python3 -c '
import os, pty
pid, fd = pty.fork()
if pid == 0:
    os.write(1, b"yes"); os._exit(0)
print(os.read(fd, 3).decode()); os.waitpid(pid, 0)'""", prints("yes")),
    works("terminal-by-script", "script -qec 'echo yes' /dev/null | tr -d '\\r'", prints("yes"), program="script"),
]

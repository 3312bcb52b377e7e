"""Processes of the host, and processes that try to outlive their call."""
import os
import signal
import struct
import subprocess
import time

from case import decided, left_running, present, refused, victim_changed, works

CASES = []


def on_victim(name, run, effect=victim_changed, **more):
    CASES.append(refused(name, run, effect, victim=True, **more))


on_victim("signal", '"$ATTACK" signal "$VICTIM" 10')
on_victim("signal-by-shell", 'kill -TERM "$VICTIM"')
on_victim("signal-to-group", 'kill -HUP -- "-$VICTIM"')
on_victim("signal-to-thread", '"$ATTACK" thread-signal "$VICTIM" 10')
on_victim("signal-queued", '"$ATTACK" queue-signal "$VICTIM" 10')
on_victim("signal-by-pidfd", '"$ATTACK" pidfd-signal "$VICTIM" 10')
on_victim("signal-by-descriptor-owner", '"$ATTACK" owner-signal "$VICTIM"; sleep 0.1')
on_victim("kill-host-process", 'kill -9 "$VICTIM"')
on_victim("trace-host-process", '"$ATTACK" ptrace "$VICTIM" "$ADDRESS"')
on_victim("seize-host-process", '"$ATTACK" seize "$VICTIM" "$ADDRESS"')
on_victim("write-memory-of-host-process", '"$ATTACK" vm-write "$VICTIM" "$ADDRESS"')
on_victim("write-proc-mem-of-host-process", '"$ATTACK" mem-write "$VICTIM" "$ADDRESS"')
on_victim("take-descriptor-of-host-process", '"$ATTACK" take-fd "$VICTIM" "$VICTIM_FD"',
          lambda w: os.path.getsize(w.host_dir + "/victim") and "written through a taken descriptor")
on_victim("limit-host-process", '"$ATTACK" limit "$VICTIM"')
on_victim("renice-host-process", '"$ATTACK" priority "$VICTIM"')
on_victim("io-priority-of-host-process", '"$ATTACK" io-priority "$VICTIM"')
on_victim("schedule-host-process", '"$ATTACK" scheduler "$VICTIM"')
on_victim("pin-host-process", '"$ATTACK" affinity "$VICTIM"')


def proc_file(name, value):
    def effect(w):
        with open(f"/proc/{w.victim[0]}/{name}", encoding="utf-8") as f:
            return f.read().strip() == value and f"the host process has {name} {value}"
    return effect


on_victim("oom-score-of-host-process", 'echo 777 > "/proc/$VICTIM/oom_score_adj"', proc_file("oom_score_adj", "777"))
on_victim("core-filter-of-host-process", 'echo 0x7 > "/proc/$VICTIM/coredump_filter"',
          proc_file("coredump_filter", "00000007"))
CASES.append(decided("read-environment-of-host-process", 'tr "\\0" "\\n" < "/proc/$VICTIM/environ" | grep ^BASE=',
                     lambda w: w.done.out.startswith("BASE=") and "read", "reading is allowed", victim=True))

# The agent's own processes.
CASES += [
    refused("kill-the-parent", '[ "$PPID" -gt 1 ] && kill -9 "$PPID"; sleep 0.2; exit 0',
            lambda w: w.done.code != 0 and "the call did not end by itself",
            wrap=lambda w: ["sh", "-c", '"$@"; exit $?', "parent"]),
    refused("kill-the-parents-parent", """
        g=$(cut -d" " -f4 "/proc/$PPID/stat"); [ "$g" -gt 1 ] && kill -9 "$g"; sleep 0.2; exit 0""",
            lambda w: w.done.code != 0 and "the call did not end by itself",
            wrap=lambda w: ["sh", "-c", 'sh -c "\\"\\$@\\"; exit \\$?" inner "$@"; exit $?', "parent"]),
    refused("key-in-the-agents-environment", r"""
        env; for p in /proc/[0-9]*; do tr '\0' '\n' < "$p/environ"; done 2>/dev/null""",
            lambda w: "sk-attack-" + w.unique in w.done.out and "the key was printed",
            env=lambda w: {"OPENAI_API_KEY": "sk-attack-" + w.unique}),
]


# Programs that give privileges.
def privileged_program(w):
    """Only root can make one; it would let the ordinary user write a folder of root's."""
    os.mkdir(w.base + "/roots")
    if os.getuid() != 0:
        return
    with open(w.tools.helper, "rb") as f, open(w.base + "/program", "wb") as g:
        g.write(f.read())
    os.chmod(w.base + "/roots", 0o755)
    os.chmod(w.base + "/program", 0o755)


def setuid(w):
    privileged_program(w)
    if os.getuid() == 0:
        os.chmod(w.base + "/program", 0o4755)


def capable(w):
    privileged_program(w)
    if os.getuid() == 0:
        os.setxattr(w.base + "/program", "security.capability", struct.pack("<5I", 0x02000001, 1 << 1, 0, 0, 0))


for name, setup in (("setuid-program", setuid), ("program-with-capability", capable)):
    CASES.append(refused(name, '"$BASE/program" create "$BASE/roots/new"', present("roots/new"), setup=setup,
                         users=("ordinary",),
                         needs="" if os.getuid() == 0 else "only root can make such a program"))

# What tries to stay.
STAYS = (
    ("background", "sleep 9 & disown"),
    ("nohup", "nohup sleep 9 >/dev/null 2>&1 &"),
    ("new-session", "setsid -f sleep 9"),
    ("double-fork", '"$ATTACK" daemon "$WS/written"'),
    ("signals-ignored", "(trap '' TERM HUP INT QUIT PIPE; for i in 1 2 3 4 5 6 7 8 9; do sleep 1; done) &"),
    ("stopped", "sleep 9 & kill -STOP $!"),
    ("environment-cleared", """env -i bash -c 'exec -a "$0" sleep 9' "$ATTACK_MARK" & sleep 0.05"""),
    ("child-of-the-parent", '"$ATTACK" sibling "$ATTACK_MARK"; sleep 0.05'),
    ("own-namespaces", "unshare -Urpf sleep 9 & sleep 0.05"),
    ("pipes-held", "sleep 9 & echo done"),
    ("coprocess", "coproc { sleep 9; }; true"),
    ("always-another", 'f() { [ "$1" -gt 0 ] && { sleep 0.1; f $(($1 - 1)) & } }; f 20 & sleep 0.05; f 20 &'),
)
for name, run in STAYS:
    CASES.append(refused("outlive-" + name, run, left_running))


def ended_by(number, whom):
    """The call is running, and `whom` is ended from outside."""
    def drive(w):
        child = w.start(w.argv("sleep 9 & setsid sleep 9 & wait"), cwd=w.ws, stderr=subprocess.DEVNULL)
        w.children.append(child)
        end = time.monotonic() + 5
        while sum(w.name_of(pid) == "sleep" for pid in w.processes()) < 2 and time.monotonic() < end:
            time.sleep(0.02)
        target = child.pid
        if not w.baseline:
            target = whom(w, child) or child.pid
        os.kill(target, number)
        child.wait(5)
    return drive


def named(name):
    return lambda w, child: next((pid for pid in w.processes() if w.name_of(pid) == name), None)


def gone(w):
    found = w.survivors(within=3)
    return found and f"still running: {found}"


for name, number, whom in (("agent-killed", signal.SIGKILL, lambda w, child: None),
                           ("agent-terminated", signal.SIGTERM, lambda w, child: None),
                           ("runner-killed", signal.SIGKILL, lambda w,
                            child: named("bwrap" if w.runner == "bwrap" else "bash")(w, child)),
                           ("reaper-killed", signal.SIGKILL, named("call-init"))):
    CASES.append(refused(name + "-leaves-nothing", "", gone, drive=ended_by(number, whom)))

CASES += [
    works("signal-own-child", 'sleep 9 & kill $!; wait $!; [ $? = 143 ] && echo yes', lambda w: w.done.out == "yes\n"),
    works("trace-own-child", '"$ATTACK" trace-child', lambda w: w.done.code == 0 and "traced"),
]

"""The kernel's own interfaces: settings, mounts, namespaces, io_uring, other ABIs' call numbers, keys."""
import os
import subprocess

from case import ROOT, outside, refused, victim_changed
from paths import kernel_log

CASES = []


def attack(name, run, effect=None, **more):
    CASES.append(refused(name, run, effect, **more))


# -- settings: changed to another harmless value, and put back ---------------------------------------------------------

def read(path):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read().strip()
    except OSError:
        return ""


def setting(name, path, value, run=None, other=None, needs=ROOT):
    """`value`, or `other` where that is what it is already."""
    def setup(w):
        w.note["was"] = read(path)
        w.note["value"] = other if w.note["was"] == value else value

    def effect(w):
        return read(path) != w.note["was"] and f"{path} is {read(path)!r}"

    def undo(w):
        if read(path) != w.note["was"]:
            with open(path, "w", encoding="utf-8") as f:
                f.write(w.note["was"])

    attack(name, run or f'echo "$VALUE" > {path}', effect, setup=setup, undo=undo, alone=path, needs=needs,
           env=lambda w: {"VALUE": w.note.get("value", "")})


INTERVAL, CORE, TTL = "/proc/sys/vm/stat_interval", "/proc/sys/kernel/core_pattern", "/proc/sys/net/ipv4/ip_default_ttl"
HOSTNAME, KSM = "/proc/sys/kernel/hostname", "/sys/kernel/mm/ksm/sleep_millisecs"
setting("sysctl", INTERVAL, "2", other="3")
setting("sysctl-by-tool", INTERVAL, "2", 'sysctl -q "vm.stat_interval=$VALUE"', "3")
setting("sysctl-by-self-root", INTERVAL, "2", f'echo "$VALUE" > /proc/self/root{INTERVAL}', "3")
setting("sysctl-by-thread-self-root", INTERVAL, "2", f'echo "$VALUE" > /proc/thread-self/root{INTERVAL}', "3")
setting("sysctl-by-fresh-proc", INTERVAL, "2", f"unshare -rmpf --mount-proc sh -c 'echo \"$VALUE\" > {INTERVAL}'", "3",
        needs="a user namespace owns no such setting")
setting("sysctl-by-proc-mount", INTERVAL, "2",
        f'mkdir -p p; mount -t proc none p && echo "$VALUE" > p{INTERVAL[5:]}; umount p', "3")
setting("core-pattern", CORE, "core.attack", other="core")
setting("network-setting", TTL, "65", other="66")
setting("host-name-setting", HOSTNAME, "attacked", other="attacked2")
setting("sys-file", KSM, "21", other="22", needs="needs root and KSM")
setting("sys-file-by-self-root", KSM, "21", f'echo "$VALUE" > /proc/self/root{KSM}', "22", needs="needs root and KSM")
setting("host-name", HOSTNAME, "attacked", '"$ATTACK" hostname "$VALUE"', "attacked2")
setting("domain-name", "/proc/sys/kernel/domainname", "attacked", '"$ATTACK" domainname "$VALUE"', "attacked2")


def console_level(w):
    w.note["was"] = read("/proc/sys/kernel/printk")


attack("console-level", '"$ATTACK" loglevel 3; "$ATTACK" loglevel 6',
       lambda w: read("/proc/sys/kernel/printk") != w.note["was"] and "changed",
       setup=console_level, needs="needs root, and another level than 6", alone="printk",
       undo=lambda w: os.getuid() == 0 and subprocess.run(["sysctl", "-qw", "kernel.printk=" + w.note["was"]], check=False))


def accounting_off(w):
    import ctypes
    if os.getuid() == 0:
        ctypes.CDLL(None).acct(None)


attack("accounting-file", '"$ATTACK" acct "$OUT/f"; true', outside, undo=accounting_off, needs="needs root and accounting",
       alone="accounting")
attack("system-request", 'for f in /proc/sysrq-trigger /proc/self/root/proc/sysrq-trigger; do [ -e $f ] && echo h > $f; done',
       lambda w: kernel_log_has("sysrq: HELP"), needs="needs a kernel with it", users=("root",), alone="sysrq")


def kernel_log_has(text):
    done = subprocess.run(["dmesg"], capture_output=True, text=True, errors="replace", check=False)
    return text in "\n".join(done.stdout.splitlines()[-200:]) and "the system request was served"


def cgroups(w):
    return next((root + "/attack-" + w.unique for root in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup", "/sys/fs/cgroup/cpu")
                 if os.path.isdir(root + "/attack-" + w.unique)), None)


attack("control-group", 'for d in /sys/fs/cgroup/unified /sys/fs/cgroup /sys/fs/cgroup/cpu; do mkdir "$d/attack-$UNIQUE" && break; done',
       lambda w: cgroups(w), undo=lambda w: cgroups(w) and os.rmdir(cgroups(w)), needs="needs root and control groups")
attack("message-to-kernel-log", 'echo "attack $UNIQUE;" > /proc/self/root/dev/kmsg', kernel_log, users=("root",))

# -- mounts and namespaces ---------------------------------------------------------------------------------------------


def mounted(w):
    return w.base + "/" in read("/proc/self/mountinfo") and "the host has a new mount"


def unmount(w):
    for line in reversed(read("/proc/self/mountinfo").splitlines()):
        if w.base + "/" in line.split()[4]:
            subprocess.run(["umount", "-l", line.split()[4]], check=False)


def mounts(name, run, effect=mounted, **more):
    attack(name, run, effect, undo=unmount, **dict({"needs": ROOT}, **more))


def mount_something(w):
    os.mkdir(w.host_dir + "/mount")
    if os.getuid() == 0:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", w.host_dir + "/mount"], check=True)


mounts("mount-tmpfs", '"$ATTACK" mount-tmpfs "$OUT"')
mounts("mount-bind", '"$ATTACK" mount-bind "$WS" "$OUT"')
mounts("mount-by-new-calls", '"$ATTACK" new-mount "$OUT"')
mounts("mount-by-tool", 'mount -t tmpfs none "$OUT" || mount --bind / "$OUT"')
mounts("unmount", '"$ATTACK" umount "$BASE/host/mount"; sleep 0.05', lambda w: not mounted(w)
       and "a mount of the host is gone",
       setup=mount_something, users=("root",))
WRITABLE = (
    ("remount-writable", 'remount / "$OUT/new"'),
    ("mount-attributes-writable", 'mount-setattr / "$OUT/new"'),
    ("mount-clone-writable", 'open-tree / "${OUT:1}/new"'),
)
for name, op in WRITABLE:
    attack(name, f'"$ATTACK" {op}', outside, needs=ROOT)
    attack(name + "-in-user-namespace", f'"$ATTACK" in-userns {op}', outside,
           needs="a mount of the first user namespace may be locked")
CASES += [
    refused("bind-writable-in-user-namespace", """
        unshare -rm sh -c 'mkdir -p m; mount --bind "$OUT" m; mount -o remount,bind,rw m; echo PWN > m/new' || unshare -r sh -c 'echo PWN > "$OUT/new"'""",
            outside),
    refused("move-mount-away-in-user-namespace", """unshare -rm sh -c 'umount -l "$WS"; umount -l /tmp; echo PWN > "$OUT/new"'""", outside),
    refused("user-namespace-writes", """unshare -r sh -c 'echo PWN > "$OUT/new"'""", outside),
    refused("overlay-in-user-namespace", """unshare -rm sh -c '
        mkdir -p u w; mount -t overlay -o "lowerdir=/,upperdir=$PWD/u,workdir=$PWD/w" none "$OUT"; echo PWN > "$OUT/f"; echo PWN > /proc/1/root"$OUT"/new'""",
            outside, needs="an overlay is a place of its own"),
    refused("pivot-root-in-user-namespace", """unshare -rm sh -c '
        mount --bind / "$OUT/d" && cd "$OUT/d" && pivot_root . . && umount -l . ; echo PWN > "$OUT/new"'""", outside),
    refused("change-root", '"$ATTACK" chroot "$OUT" /new', outside, needs=ROOT),
    refused("change-root-in-user-namespace", '"$ATTACK" in-userns chroot "$OUT" /new', outside),
    refused("change-root-to-host-process", '"$ATTACK" chroot "/proc/$VICTIM/root" "$OUT/new"', outside, needs=ROOT,
            victim=True),
    refused("join-mounts-of-host-process", '"$ATTACK" join-mounts "$VICTIM" "$OUT/new"', outside, needs=ROOT, victim=True),
    refused("join-namespaces-of-host-process", 'nsenter -t "$VICTIM" -m sh -c "echo PWN > $OUT/new"', outside,
            needs=ROOT, victim=True),
    refused("join-namespaces-of-first-process", 'nsenter -t 1 -m sh -c "echo PWN > $OUT/new"', outside,
            needs="needs leave to look at the first process"),
]

# -- io_uring ----------------------------------------------------------------------------------------------------------

for name, args in (("create", '"$OUT/new"'), ("truncate", '"$OUT/f"'), ("unlink", '"$OUT/f"'), ("mkdir", '"$OUT/new"'),
                   ("rename", '"$OUT/f" "$OUT/new"'), ("link", '"$OUT/f" "$OUT/new"'), ("symlink", '/etc "$OUT/new"'),
                   ("setxattr", '"$OUT/f"'), ("fsetxattr", '"$OUT/f"')):
    attack("ring-" + name, f'"$ATTACK" uring {name} {args}', outside, spread=True, needs="needs io_uring" if
           read("/proc/sys/kernel/io_uring_disabled") not in ("", "0") else "")

# -- other ABIs: the same kernel, by numbers that a filter for one ABI does not know ----------------------------------

X86 = os.uname().machine == "x86_64"
for name, args in (("create", '"$OUT/new"'), ("truncate", '"$OUT/f"'), ("chmod", '"$OUT/f"'), ("mkdir", '"$OUT/new"'),
                   ("unlink", '"$OUT/f"'), ("lchown", '"$OUT/f"'), ("rename", '"$OUT/f" "$OUT/new"'),
                   ("link", '"$OUT/f" "$WS/new"'), ("utime", '"$OUT/f"')):
    attack("i386-" + name, f'"$ATTACK" i386 {name} {args}', outside, needs="" if X86 else "x86_64 only", spread=True)
    attack("x32-" + name, f'"$ATTACK" x32 {name} {args}', outside, needs="needs x86_64 and a kernel with x32",
           spread=True)
for abi in ("i386", "x32"):
    attack(abi + "-kill", f'"$ATTACK" {abi} kill "$VICTIM" 10', victim_changed, victim=True,
           needs="" if abi == "i386" and X86 else "needs x86_64 and a kernel with x32")

# -- keys --------------------------------------------------------------------------------------------------------------


def as_user(w, *words):
    return subprocess.run(w.as_user() + [w.tools.helper, *words], capture_output=True, text=True, check=False)


attack("key-left-behind", '"$ATTACK" add-key "$UNIQUE"', lambda w: as_user(w, "find-key", w.unique).returncode == 0
       and "a key stays",
       undo=lambda w: as_user(w, "drop-key", w.unique))
attack("key-of-the-user-removed", '"$ATTACK" drop-key "$UNIQUE"', lambda w: as_user(w, "find-key", w.unique).returncode != 0
       and "it is gone",
       setup=lambda w: as_user(w, "add-key", w.unique), undo=lambda w: as_user(w, "drop-key", w.unique))

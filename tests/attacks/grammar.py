"""Random commands for generate.py: shell statements, and programs of system calls for calls.py.

Everything is named by what it means and spelled at random: {o} something outside the workspace, {i} something inside,
{a} either, {p} a protected name, {n} a new name inside, {t} in the temporary folder, {d} a folder; {m} a mode, {u} an
owner, {x} one of three descriptors. No path leaves the case's own folder (or its own names in /tmp), by whatever
spelling: a sandbox that is wrong must not cost more than that. `chrooted` and `in-userns chroot` go on only in the new root.
"""
import dataclasses
import json
import os
import re

READ_ONLY, WORKSPACE_WRITE = "read-only", "workspace-write"
OUTSIDE = ("$OUT/f", "$OUT/f", "$OUT/f", "$OUT/g", "$OUT/g", "$OUT/d", "$OUT/d", "$OUT/d/x", "$OUT/d/x", "$OUT/d/new",
           "$OUT/new", "$OUT/new", "$OUT/new2", "$OUT/fifo",
           "$OUT/l", "$OUT/dl", "$OUT/dl/new", "$OUT/ro", "$OUT/suid", "$OUT/secret", "$OUT/secret/k", "$OUT/sock",
           "$OUT/deep/a/b",
           "$OUT/deep", "$OUT", "$HOME/new", "$HOME/.bashrc", "$HOME", "$BASE/new", "$BASE/host/victim", "$BASE/state/new",
           "$BASE/main/.git/config", "$BASE/main/.git/hooks/new", "$BASE/main/.git/HEAD", "$BASE/main/.git/refs/heads/new",
           "$BASE/main/.git/worktrees/ws/commondir", "$BASE/main/.git/worktrees/ws/HEAD",
           "$BASE/main/.git/worktrees/other/commondir",
           "$BASE/main/.git/objects", "$BASE/main/.git/worktrees/ws")
FOLDERS = ("$OUT", "$OUT/d", "$OUT/deep", "$OUT/secret", "$OUT/dl", "$HOME", "$BASE")
INSIDE = ("$WS/f", "$WS/f", "$WS/g", "$WS/d", "$WS/d/x", "$WS/n1", "$WS/n2", "$WS/n3", "$WS/d/n1", "$WS/n1/x", "$WS/sub/y",
          "$WS/sub",
          "$WS/lf", "$WS/ld", "$WS/ld/f", "$WS/ld/new", "$WS/lw", "$WS/lw/x", "$WS/lc", "$WS/lp/f", "$WS/fifo")
NEW = ("$WS/n1", "$WS/n2", "$WS/n3", "$WS/d/n1", "$WS/sub/n2")
PROTECTED = ("$WS/.git", "$WS/.git/config", "$WS/.git/config", "$WS/.git/hooks", "$WS/.git/hooks/pre-commit",
             "$WS/.git/hooks/new",
             "$WS/.git/HEAD", "$WS/.git/config.worktree", "$WS/.git/commondir", "$WS/.git/info", "$WS/.git/objects",
             "$WS/.vscode",
             "$WS/.vscode", "$WS/.vscode/tasks.json", "$WS/.idea", "$WS/.idea/x.xml", "$WS/.envrc", "$WS/.mcp.json", "$WS")
TEMPORARY = ("/tmp/$UNIQUE-a", "/tmp/$UNIQUE-b", "/tmp/$UNIQUE-d/x")
MODES = ("000", "400", "600", "644", "755", "777", "4755", "2777", "u+s", "o+w", "-x", "700")
OWNERS = ("0", "1", "65534", "$(id -u)", ":1", ":$(id -g)", "1:1")
HOW_PATH = ("chmod", "chmod-setuid", "chmod-000", "fchmodat", "fchmodat2", "chown", "lchown", "fchownat", "utimensat",
            "utimes", "utime",
            "futimesat", "setxattr", "lsetxattr", "setxattrat", "removexattr", "lremovexattr", "removexattrat", "acl",
            "file-setattr")
HOW_OPEN = ("fchmod", "fchmod-empty-path", "chmod-proc-fd", "fchown", "futimens", "utimensat-null", "fsetxattr",
            "fremovexattr",
            "set-flags", "set-flags-high", "set-fsxattr", "set-version", "set-version-ext4", "fchownat-empty-path")

FILES = (
    'echo PWN > "{a}"', 'echo PWN > "{o}"', 'echo PWN >> "{a}"', ': > "{a}"', 'echo PWN > "{p}"', 'echo PWN >> "{p}"',
    'truncate -s 0 "{a}"', 'cp f "{a}"', 'cp -a "{a}" "{a}"', 'cp -rT "{a}" "{n}"', 'mv "{a}" "{a}"', 'mv -T "{i}" "{a}"',
    'mv -T "{n}" "{p}"', 'mv "{p}" "{n}"', 'ln "{a}" "{a}"', 'ln "{o}" "{n}"', 'ln "{i}" "{p}"', 'ln -s "{o}" "{n}"',
    'ln -sfn "{a}" "{a}"',
    'ln -sfn "{i}" "{p}"', 'ln -sfn "{d}" "{n}"', 'rm -f "{a}"', 'rm -rf "{a}"', 'rm -rf "{p}"', 'mkdir "{a}"',
    'mkdir -p "{a}"',
    'mkdir "{p}"', 'mkdir -p "{p}/z"', 'rmdir "{a}"', 'mkfifo "{a}"', 'mknod "{a}" c 1 3', 'mknod "{n}" b 7 0',
    'tee "{a}" < f',
    'printf PWN | dd of="{a}" conv=notrunc status=none', 'sed -i s/O/P/ "{a}"', 'install -m {m} f "{a}"',
    'split -b 1 f "{a}"',
    'tar -cf - f d | tar -C "{a}" -xf -', 'git init -q "{a}"', 'git config core.pager x', 'git -C "{a}" config a.b c',
    'cd "{d}" && { echo PWN > new; rm -f f; mkdir q; }', '(cd "{d}" && mv f f2; chmod 777 d)', 'mktemp -p "{d}"',
    'exec 7>>"{a}"; echo PWN >&7', 'exec 7<>"{a}"; echo PWN >&7', 'exec 7<"{a}"; echo PWN > /proc/self/fd/7',
    'echo PWN > /dev/stdin',
    'exec 7<"{d}"; mkdir /proc/self/fd/7/new; echo PWN > /dev/fd/7/new2',
    'perl -e \'open(F, "+>>", $ARGV[0]); print F "PWN"\' "{a}"',
    'perl -e \'rename($ARGV[0], $ARGV[1])\' "{a}" "{a}"', 'find "{d}" -maxdepth 2 -name "f*" -delete', 'touch "{p}"',
    'rm -rf "{n}"; mkdir "{n}"', 'git worktree prune', 'cp -rT .git "{n}"', 'mv -T .git "{n}"; mkdir .git; mkdir .git/hooks',
)
HELPER = (
    'create "{a}"', 'append "{a}"', 'truncate "{a}"', 'truncate "{o}"', 'cut "{a}"', 'cut "{o}"', 'link "{a}" "{a}"',
    'rename "{a}" "{a}"', 'exchange "{a}" "{a}"',
    'exchange "{i}" "{p}"', 'whiteout "{a}" "{a}"', 'openat2 "{a}"', 'openat2 "{p}"', 'link-write "{o}" "{n}"',
    'tmpfile "{d}" "{a}"',
    'tmpfile "$WS" "{a}"', 'map "{o}"', 'map-then-protect "{o}"', 'reopen "{a}"', 'reopen-path "{a}"', 'own-mem "{o}"',
    'handle "{o}"',
    'node "{a}" c 1 3', 'memfd-exec "{a}"', 'meta {how} "{a}"', 'meta {how} "{o}"', 'meta {how} "{p}"',
    'meta-open {howopen} "{a}"',
    'meta-open {howopen} "{p}"', 'meta-opath {howopen} "{a}"', 'race-chmod "$WS/f" "{o}"', 'thread-fchmod "$WS/f" "{o}"',
    'thread-chmod "{d}" f', 'uring create "{a}"', 'uring truncate "{o}"', 'uring unlink "{a}"', 'uring mkdir "{a}"',
    'uring rename "{a}" "{a}"', 'uring link "{a}" "{a}"', 'uring symlink /x "{a}"', 'uring setxattr "{a}"',
    'uring fsetxattr "{o}"',
    'i386 create "{a}"', 'i386 truncate "{o}"', 'i386 chmod "{a}"', 'i386 mkdir "{a}"', 'i386 unlink "{a}"',
    'i386 rename "{a}" "{a}"',
    'i386 link "{a}" "{a}"', 'x32 create "{a}"', 'x32 mkdir "{a}"', 'x32 chmod "{a}"', 'bind "{a}"', 'bind "@$UNIQUE-inside"',
    'in-userns create "{o}"', 'in-userns chroot "{d}" /new', 'in-userns chroot "$WS" /.envrc',
    'in-userns mount-bind "$WS" "$OUT"',
    'in-userns mount-tmpfs "{d}"', 'in-userns meta {how} "{a}"', 'in-userns mount-setattr / "{o}"',
    'in-userns new-mount "{d}"',
    'in-userns chroot-chmod "{d}" /f', 'chroot "{d}" /new', 'mount-bind "$WS" "$OUT/d"', 'mount-tmpfs "$OUT/d"',
    'umount "$OUT"',
    'mount-setattr "$OUT" "{o}"', 'new-mount "$OUT/d"', 'connect "@attack-$UNIQUE"', 'datagram "@attack-$UNIQUE"',
    'subvolume "{d}" new',
    'meta-fd {howopen} 0', 'fd-openat 0 new', 'fd-unlinkat 0 f', 'fd-chdir 0 new', 'fd-write 0', 'fd-truncate 0',
    'shm $NUMBER', 'msg $NUMBER',
    'sem $NUMBER', 'mq "/$UNIQUE"', 'add-key "$UNIQUE"',
)
VICTIM = (
    'signal $VICTIM 10', 'thread-signal $VICTIM 10', 'queue-signal $VICTIM 10', 'pidfd-signal $VICTIM 10',
    'owner-signal $VICTIM',
    'ptrace $VICTIM $ADDRESS', 'seize $VICTIM $ADDRESS', 'vm-write $VICTIM $ADDRESS', 'mem-write $VICTIM $ADDRESS',
    'take-fd $VICTIM $VICTIM_FD', 'limit $VICTIM', 'priority $VICTIM', 'io-priority $VICTIM', 'scheduler $VICTIM',
    'affinity $VICTIM',
    'join-mounts $VICTIM "{o}"', 'i386 kill $VICTIM 10', 'chroot "/proc/$VICTIM/root" "{o}"',
)
METADATA = (
    'chmod {m} "{a}"', 'chmod {m} "{o}"', 'chmod {m} "{p}"', 'chmod -R {m} "{a}"', 'chmod 000 .git', 'chmod 755 .git',
    'chown {u} "{a}"',
    'chown -h {u} "{a}"', 'chown -R {u} "{o}"', 'chgrp $(id -g) "{o}"', 'touch "{a}"', 'touch -c "{o}"', 'touch -h "{a}"',
    'touch -d 2001-01-01 "{a}"', 'touch -r f "{o}"', 'chattr +A "{a}"', 'chattr +d "{o}"', 'chattr -v 7 "{o}"',
    'cp -p f "{a}"',
    'cp --attributes-only -p f "{o}"', 'exec 7<"{a}"; chmod {m} /proc/self/fd/7 /dev/fd/7',
    'find "{d}" -maxdepth 1 -exec chmod {m} {} +',
    'perl -e \'chmod 0777, $ARGV[0]; utime 1, 1, $ARGV[0]; chown -1, $), $ARGV[0]\' "{a}"', 'umask 0; mkdir -m {m} "{n}"',
    'chmod 755 .git; echo PWN > "{p}"', 'chmod {m} .git; mkdir "{p}"',
    'sleep 0.3 7<"{o}" & sleep 0.05; chmod 777 /proc/$!/fd/7', 'setpriv --reuid=65534 --clear-groups chmod 777 "{a}"',
)
LATER = (
    '(sleep 0.2; echo PWN > "{a}") & disown', 'setsid -f sh -c \'sleep 0.4; echo PWN > "{o}"\'',
    'nohup sh -c \'sleep 0.3; rm -rf "{a}"\' >&- 2>&- &',
    '"$ATTACK" daemon "{a}"', '"$ATTACK" sibling "$ATTACK_MARK"', 'sleep 3 & kill -STOP $!',
    '(trap "" TERM HUP INT QUIT; sleep 1; sleep 1; mkdir "{a}") &', 'env -i setsid -f sleep 3',
    'env -i bash -c "(sleep 2 &) & sleep 2" & disown',
    'unshare -Urpf sleep 3 & sleep 0.03', 'coproc { sleep 3; }',
    'f() { [ "$1" -gt 0 ] && { sleep 0.05; f $(($1 - 1)) & } }; f 8 & sleep 0.03',
    'exec 5>&1 6>&2; setsid -f sleep 3', 'setsid -f setsid -f sh -c \'exec -a x sleep 2\'',
)
SPACES = (
    'unshare -Ur sh -c \'echo PWN > "{o}"; mkdir "{p}"\'',
    'unshare -Urm sh -c \'mount --bind "$WS" "$OUT/d"; echo PWN > "{o}"\'',
    'unshare -rmpf --mount-proc sh -c \'echo PWN > "{o}"\'', 'unshare -U sh -c \'echo PWN > "{a}"; chmod 777 "{a}"\'',
    'unshare -Urm sh -c \'umount -l "$WS"; umount -l /tmp; echo PWN > "{o}"\'',
    'nsenter -t $VICTIM -m sh -c \'echo PWN > "{o}"\'',
    'nsenter -t $VICTIM -U -m true', 'unshare -Urm sh -c \'mount -t tmpfs none "{d}"; mount -o remount,rw,bind "{d}"\'',
    'unshare -Urm sh -c \'mkdir -p n1 n2; mount -t overlay -o "lowerdir=$WS,upperdir=$PWD/n1,workdir=$PWD/n2" none "$OUT"; echo PWN > "{o}"\'',
    'kill -USR1 $VICTIM', 'kill -HUP -- -$VICTIM', 'kill -9 $PPID', 'kill -STOP $PPID',
    'echo 777 > /proc/$VICTIM/oom_score_adj',
    'echo 7 > /proc/$VICTIM/coredump_filter', 'echo PWN > /proc/$VICTIM/fd/$VICTIM_FD', 'echo PWN > /proc/$VICTIM/cwd/new',
    'renice 5 -p $VICTIM', 'for p in /proc/[0-9]*; do echo PWN > "$p/root$OUT/new"; done 2>/dev/null',
    'exec "$ATTACK" create "{a}"',
    'ulimit -f 1; head -c 4096 /dev/zero > "{a}"', 'bash -c \'kill -ABRT $$\'', 'kill -TERM $$', 'exit 3',
    'exec 0<&- 1>&- 2>&-',
)
RACES = (
    '"$ATTACK" repeat 300 exchange "{i}" "{n}" & "$ATTACK" repeat 300 create "{i}/new"; wait $!',
    'mkdir -p n1; ln -sfn "{d}" n2; "$ATTACK" repeat 400 exchange n1 n2 & "$ATTACK" repeat 400 create n1/new; "$ATTACK" repeat 400 meta {how} n1/f; wait $!',
    'ln -sfn "{o}" n3; "$ATTACK" repeat 400 exchange f n3 & "$ATTACK" repeat 400 append f; "$ATTACK" repeat 400 meta {how} f; wait $!',
    'for i in 1 2 3 4 5 6 7 8; do ln -sfn "{d}" n1; rm -f n1; mkdir n1; rmdir n1; done & for i in 1 2 3 4 5 6 7 8 9; do echo PWN > n1/new; done; wait $!',
    '"$ATTACK" repeat 400 exchange d "{p}" & "$ATTACK" repeat 400 append "{p}"; wait $!',
)

# -- system calls ------------------------------------------------------------------------------------------------------

AT, EMPTY, FOLLOW, NOFOLLOW = -100, 0x1000, 0x400, 0x100
FLAGS = (0, os.O_WRONLY, os.O_RDWR, os.O_PATH, os.O_PATH | os.O_NOFOLLOW, os.O_DIRECTORY, os.O_CREAT | os.O_WRONLY,
         os.O_CREAT | os.O_EXCL,
         os.O_CREAT, os.O_TRUNC, os.O_WRONLY | os.O_TRUNC, os.O_RDWR | os.O_TMPFILE, 3, 3 | os.O_CREAT,
         os.O_NOFOLLOW | os.O_CREAT | os.O_RDWR,
         os.O_APPEND | os.O_WRONLY | os.O_NONBLOCK, os.O_PATH | os.O_CREAT | os.O_WRONLY, os.O_DIRECT | os.O_RDWR,
         os.O_NOATIME, 0o10000000 | 1,
         os.O_NONBLOCK, os.O_CREAT | os.O_DIRECTORY, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_SYNC)
HOLDERS = (0, 0, os.O_DIRECTORY, os.O_PATH, os.O_PATH | os.O_DIRECTORY, os.O_PATH | os.O_NOFOLLOW,
           os.O_RDONLY | os.O_NONBLOCK, os.O_NOATIME)
TIMES = {"hex": "e803000000000000000000000000000" + "0e8030000000000000000000000000000"}
ONE = {"hex": "01000000"}
ACL = {"hex": "02000000" "01000700ffffffff" "04000700ffffffff" "20000700ffffffff"}
ATTRIBUTES = ("user.pwn", "user.mark", "system.posix_acl_access", "system.posix_acl_default", "trusted.pwn",
              "security.capability")
IOCTLS = (0x40086602, 0x40046602, 0x401c5820, 0x40087602, 0x40086604, 0x800c6613, 0x40806685, 0x40049409, 0xc0045877,
          0x5412, 0x1_40086602,
          0x40086602 | 1 << 40, 0x6609, 0x660c, 0xc0c0f509, 0x5000940e, 0x9404)
CALLS = (
    ["open", "{a}", "{flags}", 0o644, "=x"], ["openat", AT, "{a}", "{flags}", 0o666, "=x"],
    ["openat", "@x", "{rel}", "{flags}", 0o666, "=x"],
    ["openat2", AT, "{a}", "{how2}", 24, "=x"], ["openat2", "@x", "{rel}", "{how2}", 24, "=x"], ["creat", "{a}", 0o644, "=x"],
    ["open", "{a}", "{holder}", 0, "=x"], ["open", "{o}", "{holder}", 0, "=x"], ["open", "{d}", "{holder}", 0, "=x"],
    ["open", "{i}", "{holder}", 0, "=x"], ["open", "{p}", "{holder}", 0, "=x"], ["open", "$WS", "{holder}", 0, "=x"],
    ["dup", "@x", "=x"], ["dup3", "@x", "@x", 0], ["fcntl", "@x", 4, os.O_APPEND], ["write", "@x", "PWN", 3],
    ["pwrite64", "@x", "PWN", 3, 1],
    ["ftruncate", "@x", 1], ["fallocate", "@x", "{keep}", 0, 4096], ["copy_file_range", "@x", None, "@x", None, 64, 0],
    ["map", "@x"],
    ["truncate", "{o}", 1], ["truncate", "{a}", 1], ["open", "{o}", os.O_TRUNC, 0, "=x"], ["mkdir", "{a}", 0o777],
    ["mkdirat", "@x", "{rel}", 0o777], ["mkdirat", AT, "{p}", 0o755], ["mkdirat", "@x", "{relp}", 0o755],
    ["chmod", "{p}", "{mode}"], ["utimes", "{p}", None], ["setxattr", "{p}", "user.pwn", ONE, 1, 0],
    ["lchown", "{p}", "{id}", "{id}"],
    ["open", "{p}", "{flags}", 0o644, "=x"], ["rename", "{p}", "{n}"], ["symlink", "{d}", "{p}"],
    ["rmdir", "{a}"], ["mknod", "{a}", "{type}", 0x103], ["mknodat", "@x", "{rel}", "{type}", 0x103],
    ["mknodat", "@x", "{relp}", 0o100644, 0],
    ["symlink", "{a}", "{a}"], ["symlinkat", "{d}", "@x", "{rel}"], ["link", "{a}", "{a}"],
    ["linkat", "@x", "", AT, "{a}", EMPTY],
    ["linkat", "@x", "", AT, "{p}", EMPTY], ["linkat", AT, "/proc/self/fd/{{x}}", AT, "{a}", FOLLOW],
    ["linkat", "@x", "{rel}", "@x", "{rel}", 0],
    ["linkat", AT, "/proc/self/fd/{{x}}", AT, "{p}", FOLLOW], ["open", "$WS", os.O_RDWR | os.O_TMPFILE, 0o644, "=x"],
    ["rename", "{a}", "{a}"], ["renameat", "@x", "{rel}", "@x", "{rel}"], ["renameat2", AT, "{a}", AT, "{a}", "{rename}"],
    ["renameat2", AT, "{i}", "@x", "{relp}", 0], ["rename", "{i}", "{p}"],
    ["renameat2", "@x", "{rel}", AT, "{a}", "{rename}"], ["unlink", "{a}"], ["unlinkat", "@x", "{rel}", 0],
    ["unlinkat", AT, "{a}", 0x200],
    ["chmod", "{a}", "{mode}"], ["fchmod", "@x", "{mode}"], ["fchmodat", "@x", "{rel}", "{mode}"],
    ["fchmodat", AT, "{a}", "{mode}"],
    ["fchmodat", "@x", "", "{mode}"], ["fchmodat2", "@x", "", "{mode}", EMPTY], ["fchmodat2", AT, "{a}", "{mode}", NOFOLLOW],
    ["chmod", "/proc/self/fd/{{x}}", "{mode}"], ["chmod", "/proc/thread-self/fd/{{x}}/{rel}", "{mode}"],
    ["chmod", "/dev/fd/{{x}}", "{mode}"],
    ["chown", "{a}", "{id}", "{id}"], ["lchown", "{a}", "{id}", "{id}"], ["fchown", "@x", "{id}", "{id}"],
    ["fchownat", "@x", "", "{id}", "{id}", EMPTY],
    ["fchownat", "@x", "{rel}", "{id}", "{id}", "{at}"], ["utime", "{a}", TIMES], ["utimes", "{a}", TIMES],
    ["utimes", "{a}", None],
    ["futimesat", "@x", "{rel}", TIMES], ["utimensat", "@x", None, TIMES, 0], ["utimensat", "@x", "", TIMES, EMPTY],
    ["utimensat", AT, "{a}", None, "{at}"], ["utimensat", "@x", "{rel}", TIMES, "{at}"],
    ["setxattr", "{a}", "{attr}", ONE, 1, "{xflag}"],
    ["lsetxattr", "{a}", "{attr}", ONE, 1, 0], ["fsetxattr", "@x", "{attr}", ONE, 1, 0],
    ["fsetxattr", "@x", "system.posix_acl_access", ACL, 28, 0],
    ["setxattr", "{a}", "system.posix_acl_default", ACL, 28, 0], ["setxattr", "/proc/self/fd/{{x}}", "{attr}", ONE, 1, 0],
    ["removexattr", "{a}", "{attr}"], ["lremovexattr", "{a}", "user.mark"], ["fremovexattr", "@x", "{attr}"],
    ["setxattrat", "@x", "", EMPTY, "user.pwn", {"hex": "00" * 16}, 16], ["removexattrat", "@x", "", EMPTY, "user.mark"],
    ["file_setattr", "@x", "", {"hex": "00" * 24}, 24, EMPTY], ["ioctl", "@x", "{ioctl}", ONE],
    ["ioctl", "@x", 0x40086602, {"hex": "80000800" + "00" * 28}],
    ["chdir", "{d}"], ["chdir", "{a}"], ["fchdir", "@x"], ["umask", 0], ["setsid"], ["setresuid", 65534, 65534, 65534],
    ["setresuid", -1, 1, -1],
    ["by_handle", "{o}", "{d}", "{flags}", "=x"], ["by_handle", "{o}", ".", "{flags}", "=x"],
    ["unshare", 0x10000000], ["unshare", 0x10020000], ["unshare", 0x20000], ["unshare", 0x30020000], ["unshare", 0x400],
    ["unshare", 0x200],
    ["setns", "@x", 0], ["chrooted", 0x10000000, "$WS", "{rooted}"], ["chrooted", 0x10000000, "{d}", "{rooted}"],
    ["chrooted", 0, "{d}", "{rooted}"],
    ["chrooted", 0x10000000, "$WS/d", "{rooted}"],
    ["deep", "{rooted}"], ["openat2", "@x", "{top}", "{how2top}", 24, "=x"],
    ["mount", "$WS", "$OUT/d", None, 0x1000, None], ["mount", "none", "$OUT/d", "tmpfs", 0, "size=64k"],
    ["mount", None, "$OUT", None, 0x1020, None],
    ["umount2", "$WS", 2], ["umount2", "$OUT/d", 2], ["pivot_root", "{d}", "{d}"], ["open_tree", AT, "{a}", 1, "=x"],
    ["open_tree", "@x", "", EMPTY | 1, "=x"],
    ["move_mount", "@x", "", AT, "$OUT/d", 4], ["fsopen", "tmpfs", 0, "=x"], ["fspick", AT, "$OUT", 0, "=x"],
    ["mount_setattr", AT, "$OUT", 0x8000, {"hex": "00" * 8 + "01" + "00" * 23}, 32],
    ["kill", "#VICTIM", 10], ["tgkill", "#VICTIM", "#VICTIM", 10],
    ["rt_sigqueueinfo", "#VICTIM", 10, {"hex": "0a00000000000000ffffffff" + "00" * 116}],
    ["pidfd_open", "#VICTIM", 0, "=x"], ["pidfd_send_signal", "@x", 10, None, 0],
    ["pidfd_getfd", "@x", "#VICTIM_FD", 0, "=x"], ["setns", "@x", 0x20000],
    ["prlimit64", "#VICTIM", 7, {"hex": "4d000000000000004d00000000000000"}, None], ["ptrace", 16, "#VICTIM", 0, 0],
    ["ptrace", 0x4206, "#VICTIM", 0, 0],
    ["open", "/proc/$VICTIM/mem", 2, 0, "=x"], ["open", "/proc/$VICTIM/fd/$VICTIM_FD", 1, 0, "=x"],
    ["open", "/proc/$VICTIM/root", os.O_PATH, 0, "=x"],
    ["open", "/proc/$VICTIM/ns/mnt", 0, 0, "=x"], ["owner", 10], ["memfd_create", "m", 0, "=x"],
    ["exec", "memory", "create", "{a}"],
    ["exec", "memory", "meta", "chmod", "{a}"], ["prctl", 4, 0, 0, 0, 0], ["prctl", 1, 0, 0, 0, 0], ["prctl", 36, 1, 0, 0, 0],
    ["bind", "{a}", 0], ["bind", "{p}", 0], ["bind", "{o}", 1], ["bind", "%$UNIQUE-inside", 0],
    ["connect", "%attack-$UNIQUE", 0],
    ["connect", "%attack-$UNIQUE", 1], ["fork"], ["fork", True], ["sleep", 60], ["sleep", 400], ["ignore_signals"],
    ["close", "@x"],
    ["thread", "{few}"], ["pass", "x", "{few}"], ["repeat", 20, "{one}"], ["race", "{swap}", "{one}"],
)
VALUES = {
    "{flags}": FLAGS, "{holder}": HOLDERS, "{keep}": (0, 1, 3), "{type}": (0o10644, 0o20666, 0o60666, 0o100644, 0o140644),
    "{rename}": (0, 1, 2, 4), "{mode}": (0, 0o777, 0o644, 0o4755, 0o2777, 0o1777, 0o100777), "{id}": (-1, 0, 1, 65534),
    "{xflag}": (0, 1, 2),
    "{at}": (0, NOFOLLOW, FOLLOW, EMPTY), "{attr}": ATTRIBUTES, "{ioctl}": IOCTLS,
}
RELATIVE = ("f", "d", "new", "d/new", "n1", "../f", "../ws/n2", "g", "x", ".", "../out/new", "l", "")
RELATIVE_PROTECTED = (".envrc", ".vscode", ".mcp.json", ".git/hooks/new", ".git/config.worktree", ".git/commondir", ".idea",
                      "hooks/new", "config", "config.worktree", "../.envrc")
ROOTED = ("f", "d", "new", "n1", ".vscode", ".envrc", ".git/config", ".git/hooks/new", "d/x", ".mcp.json")
ROOTED_CALLS = (
    ["mkdir", "P", 0o755], ["open", "P", os.O_CREAT | os.O_WRONLY, 0o644], ["chmod", "P", 0o777], ["truncate", "P", 1],
    ["unlink", "P"], ["rename", "/f", "P"], ["symlink", "f", "P"], ["link", "/f", "P"], ["utimes", "P", None],
    ["chown", "P", 1, 1], ["setxattr", "P", "user.pwn", ONE, 1, 0], ["mknod", "P", 0o100644, 0],
)
MOST_STATEMENTS, MOST_STEPS = 5, 8


def how2(flags, mode, resolve):
    return {"hex": b"".join(number.to_bytes(8, "little") for number in (flags, mode, resolve)).hex()}


@dataclasses.dataclass(frozen=True)
class Command:
    """Pieces that can be left out one by one: (number, shell text), or (number, a step), where steps of one number are one
    program of system calls."""
    mode: str
    pieces: tuple
    cwd: str = "ws"
    stdin: str = ""
    end: tuple = ()          # (signal, milliseconds): the agent is ended from outside

    def text(self):
        lines, program, last = [], [], None
        for number, piece in self.pieces + ((None, ""),):
            if program and number != last:
                lines.append("/usr/bin/python3 \"$CALLS\" '" + json.dumps(program) + "'")
                program = []
            if isinstance(piece, str):
                lines.append(piece)
            else:
                program.append(piece)
            last = number
        return "\n".join(line for line in lines if line)

    def smaller(self):
        """The same with one piece less, or one step less in a piece that has steps of its own; from the end."""
        for at in reversed(range(len(self.pieces))):
            number, piece = self.pieces[at]
            if len(self.pieces) > 1:
                yield self.with_pieces(at, ())
            if isinstance(piece, list) and isinstance(piece[-1], list) and isinstance(piece[-1][0], list):
                for inner in reversed(range(len(piece[-1]) if len(piece[-1]) > 1 else 0)):
                    yield self.with_pieces(at, ((number, piece[:-1] + [piece[-1][:inner] + piece[-1][inner + 1:]]),))

    def with_pieces(self, at, pieces):
        return dataclasses.replace(self, pieces=self.pieces[:at] + pieces + self.pieces[at + 1:])

    def races(self):
        """Whether it changes a path while another process of it reads it."""
        return any('["race"' in json.dumps(piece) or " repeat " in str(piece) or "for i in" in str(piece)
                   for _, piece in self.pieces)

    def shape(self):
        """What it does, without which files it does it to."""
        words = []
        for _, piece in self.pieces:
            if isinstance(piece, str):
                words.append(re.sub(r'"[^"]*/[^"]*"', "PATH", piece))
            else:
                words.append(piece[0])
        return " ; ".join(words)


class Grammar:
    def __init__(self, rng):
        self.rng = rng
        self.holders = set()

    # -- paths ---------------------------------------------------------------------------------------------------------

    def outside(self):
        return self.spelled_outside(self.rng.choice(OUTSIDE))

    def inside(self):
        return self.spelled_inside(self.rng.choice(PROTECTED if self.rng.random() < 0.35 else INSIDE))

    def anything(self):
        turn = self.rng.random()
        return self.outside() if turn < 0.5 else self.inside() if turn < 0.95 else self.rng.choice(TEMPORARY)

    def spelled_outside(self, path):
        rng, tail = self.rng, path.removeprefix("$OUT").lstrip("/")
        if path == "$BASE":                                         # no way up from there
            return rng.choice((path, "/proc/self/root" + path))
        name = {"$OUT": "out", "$HOME": "home", "$BASE": ""}[path.split("/")[0]]
        rest = "/".join(part for part in [name] + path.split("/")[1:] if part)
        ways = ["/proc/self/root" + path, "/proc/thread-self/root" + path, "../" + rest, "/proc/self/cwd/../" + rest,
                "/proc/$PPID/root" + path, "/proc/$VICTIM/root" + path, "/proc/$VICTIM/cwd/../" + rest, "/proc/1/root" + path,
                "$WS/../" + rest, "d/../../" + rest, "lc/../" + rest]
        if path.startswith("$OUT"):
            self.holders.add(9)
            ways += ["ld/" + tail, "lp/" + tail, "/proc/self/fd/9/" + tail, "/dev/fd/9/" + tail, "$WS/ld/" + tail]
        return path if rng.random() < 0.45 else rng.choice(ways)

    def spelled_inside(self, path):
        tail = path.removeprefix("$WS").lstrip("/")
        self.holders.add(8)
        ways = ["/proc/self/cwd/" + tail, "/proc/self/root" + path, "./" + tail, "lc/" + tail, "/proc/self/fd/8/" + tail,
                "/dev/fd/8/" + tail, "d/../" + tail, "ld/../ws/" + tail, "$WS/../ws/" + tail, "/proc/thread-self/root" + path,
                path + "/"]
        turn = self.rng.random()
        return (tail or ".") if turn < 0.35 else path if turn < 0.6 else self.rng.choice(ways)

    # -- templates -----------------------------------------------------------------------------------------------------

    def word(self, match):
        rng = self.rng
        return {"o": self.outside, "i": self.inside, "a": self.anything, "t": lambda: rng.choice(TEMPORARY),
                "p": lambda: self.spelled_inside(rng.choice(PROTECTED)), "n": lambda: self.spelled_inside(rng.choice(NEW)),
                "d": lambda: self.spelled_outside(rng.choice(FOLDERS)), "m": lambda: rng.choice(MODES),
                "u": lambda: rng.choice(OWNERS),
                "x": lambda: rng.choice("abc"), "how": lambda: rng.choice(HOW_PATH), "howopen": lambda: rng.choice(HOW_OPEN),
                "rel": lambda: rng.choice(RELATIVE), "relp": lambda: rng.choice(RELATIVE_PROTECTED)}[match[1]]()

    def filled(self, template):
        return re.sub(r"\{(\w+)\}", self.word, template)

    def statement(self):
        kind = self.rng.choices((FILES, HELPER, METADATA, VICTIM, LATER, SPACES, RACES), (34, 26, 18, 5, 7, 6, 4))[0]
        text = self.filled(self.rng.choice(kind))
        return '"$ATTACK" ' + text if kind in (HELPER, VICTIM) else text

    def step(self, deep=0):
        while True:
            template = self.rng.choice(CALLS)
            if not (deep and template[0] in ("fork", "thread", "pass", "race", "repeat", "chrooted", "deep", "sleep")):
                return [self.value(part, deep) for part in template]

    def value(self, part, deep):
        rng = self.rng
        if not isinstance(part, str):
            return part
        if part in VALUES:
            return rng.choice(VALUES[part])
        if part == "{how2}":
            flags, resolve = rng.choice(FLAGS), rng.choice((0, 0, 1, 2, 4, 8, 16))
            return how2(flags, 0o644 if flags & (os.O_CREAT | 0o20000000) else 0, resolve)
        if part == "{top}":                                         # with RESOLVE_IN_ROOT: of the folder given
            return self.rooted()[1]
        if part == "{how2top}":
            flags = rng.choice((1, os.O_CREAT | 1, os.O_TRUNC))
            return how2(flags, 0o644 if flags & os.O_CREAT else 0, 16)
        if part == "{one}":
            return self.step(1)
        if part == "{few}":
            return [self.step(1) for _ in range(rng.randint(1, 3))]
        if part == "{swap}":
            return ["renameat2", AT, self.inside(), AT, self.filled("{n}"), 2]
        if part == "{rooted}":
            return [self.rooted() for _ in range(rng.randint(1, 3))]
        if part in ("x", "@x", "=x"):
            return part.replace("x", rng.choice("abc"))
        return self.filled(part)

    def rooted(self):
        """A step whose path begins at a new root."""
        path, step = "/" + self.rng.choice(ROOTED), self.rng.choice(ROOTED_CALLS)
        return [path if part == "P" else part for part in step]

    def command(self):
        """Shell statements, programs of system calls, or both."""
        rng, pieces = self.rng, []
        self.holders = set()
        for number in range(rng.choice((1, 1, 2, 2, 3, MOST_STATEMENTS))):
            if rng.random() < 0.4:
                pieces += [(number, self.step()) for _ in range(rng.randint(2, MOST_STEPS))]
            else:
                pieces.append((number, self.statement()))
        opened = [(-1, f"exec {fd}<{'.' if fd == 8 else '$OUT'}") for fd in sorted(self.holders)
                  if f"fd/{fd}/" in json.dumps(pieces)]
        end = (rng.choice(("TERM", "KILL")), rng.randint(5, 400)) if rng.random() < 0.03 else ()
        return Command(rng.choice((READ_ONLY, WORKSPACE_WRITE, WORKSPACE_WRITE)), tuple(opened + pieces),
                       rng.choice(("ws", "ws", "ws", "ws", "ws", "ws", "ws/d", "out")),
                       rng.choice(("", "", "", "out/f", "out")), end)

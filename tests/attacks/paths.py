"""Contents and names outside the workspace, by every way a path can lead there."""
import os
import termios

from case import DECIDED, READ_ONLY, REFUSED, ROOT, WORKSPACE_WRITE, Case, both, decided, outside, present, refused, writes

CASES = []


def attack(name, run, **more):
    CASES.append(refused(name, run, **more))


# Plain, and through links.
attack("create-absolute", 'echo PWN > "$OUT/new"')
attack("create-dotdot", "echo PWN > ../out/new")
attack("create-by-openat2", '"$ATTACK" openat2 "$OUT/new"')
attack("create-odd-name", r"""echo PWN > "$OUT/"$'n\xff\nw'""")
attack("append", 'echo PWN >> "$OUT/f"')
attack("overwrite", 'echo PWN > "$OUT/f"')
attack("through-link-to-file", "echo PWN > link", setup='ln -s "$OUT/f" "$WS/link"')
attack("through-link-to-folder", "echo PWN > link/new", setup='ln -s "$OUT" "$WS/link"')
attack("through-link-made-inside", 'ln -s "$OUT/f" l && echo PWN > l')
attack("through-dangling-link", "echo PWN > link", setup='ln -s "$OUT/new" "$WS/link"')
attack("through-relative-link-chain", "echo PWN > a", setup='cd "$WS"; ln -s b a; ln -s d/../../out/f b; mkdir d')
attack("through-link-over-proc-root", "echo PWN > link/new", setup='ln -s "/proc/self/root$OUT" "$WS/link"')
attack("remove-through-link", "rm -f link/f", setup='ln -s "$OUT" "$WS/link"')
attack("link-swapped-while-written", """
    (for i in {1..20}; do rm -rf x; mkdir x; rm -rf x; ln -sn "$OUT" x; done; touch "$OUT/../stop" stop) 2>/dev/null &
    for i in {1..500}; do echo PWN > x/new; [ -e stop ] && break; done 2>/dev/null; wait""",
       needs="a race is not always won")
attack("folder-swapped-by-exchange", """
    "$ATTACK" repeat 2000 exchange real link 2>/dev/null & "$ATTACK" repeat 4000 create real/new 2>/dev/null; wait""",
       needs="a race is not always won", setup='mkdir "$WS/real"; ln -s "$OUT" "$WS/link"')

# Names: link, rename, exchange, remove, make.
attack("hard-link-in", '"$ATTACK" link "$OUT/f" "$WS/new"')
attack("hard-link-in-and-write", '"$ATTACK" link-write "$OUT/f" "$WS/new"')
attack("hard-link-out", '"$ATTACK" link "$WS/f" "$OUT/new"')
attack("rename-in", '"$ATTACK" rename "$OUT/f" "$WS/new"')
attack("rename-out", '"$ATTACK" rename "$WS/f" "$OUT/new"')
attack("rename-out-over-a-file", '"$ATTACK" rename "$WS/f" "$OUT/f"')
attack("rename-outside", '"$ATTACK" rename "$OUT/f" "$OUT/new"')
attack("rename-folder-in", '"$ATTACK" rename "$OUT/d" "$WS/d"')
attack("rename-the-outside-itself", '"$ATTACK" rename "$OUT" "$OUT.old"', effect=present("out.old"),
       undo=lambda w: os.path.exists(w.out + ".old") and os.rename(w.out + ".old", w.out))
attack("rename-the-workspace-itself", '"$ATTACK" rename "$WS" "$WS.old"', effect=present("ws.old"),
       undo=lambda w: os.path.exists(w.ws + ".old") and os.rename(w.ws + ".old", w.ws))
attack("exchange-files", '"$ATTACK" exchange "$WS/f" "$OUT/f"')
attack("exchange-folders", '"$ATTACK" exchange "$WS/d" "$OUT/d"', setup='mkdir "$WS/d"')
attack("exchange-outside", '"$ATTACK" exchange "$OUT/f" "$OUT/g"')
attack("rename-leaving-whiteout", '"$ATTACK" whiteout "$OUT/f" "$OUT/new"')
attack("move-folder-out", 'mv d "$OUT/new"', setup='mkdir -p "$WS/d/e"')
attack("unlink", 'rm -f "$OUT/f"')
attack("unlink-tree", 'rm -rf "$OUT"')
attack("make-folder", 'mkdir "$OUT/new"')
attack("make-subvolume", '"$ATTACK" subvolume "$OUT" new', needs="needs btrfs")
attack("remove-folder", 'rmdir "$OUT/d"')
attack("make-symlink", 'ln -s /etc "$OUT/new"')
attack("replace-by-symlink", 'ln -sfn /etc/passwd "$OUT/f"')
attack("make-fifo", 'mkfifo "$OUT/new"')
attack("make-socket", '"$ATTACK" bind "$OUT/new"')
attack("make-character-device", '"$ATTACK" node "$OUT/new" c 1 3', needs=ROOT)
attack("make-block-device", '"$ATTACK" node "$OUT/new" b 7 0', needs=ROOT)

# Unnamed files, truncation, mappings, descriptors opened again.
attack("unnamed-file-outside", '"$ATTACK" tmpfile "$OUT" "$OUT/new"')
attack("unnamed-file-linked-out", '"$ATTACK" tmpfile "$WS" "$OUT/new"')
attack("truncate", '"$ATTACK" truncate "$OUT/f"')
attack("truncate-by-read-only-open", '"$ATTACK" cut "$OUT/f"')
attack("map-read-descriptor-writable", '"$ATTACK" map "$OUT/f"', needs="the kernel refuses it everywhere")
attack("protect-read-map-writable", '"$ATTACK" map-then-protect "$OUT/f"', needs="the kernel refuses it everywhere")
attack("write-map-by-own-mem", '"$ATTACK" own-mem "$OUT/f"', needs="the kernel refuses it everywhere")
attack("reopen-read-descriptor", '"$ATTACK" reopen "$OUT/f"')
attack("reopen-path-descriptor", '"$ATTACK" reopen-path "$OUT/f"')
attack("reopen-by-dev-fd", 'exec 9< "$OUT/f"; echo PWN > /dev/fd/9')
attack("create-below-own-descriptor", 'exec 9< "$OUT"; echo PWN > /proc/self/fd/9/new')
attack("open-by-handle", '"$ATTACK" handle "$OUT/f"', needs=ROOT)

# Through /proc.
attack("proc-self-root", 'echo PWN > "/proc/self/root$OUT/new"')
attack("proc-thread-self-root", 'echo PWN > "/proc/thread-self/root$OUT/new"')
attack("proc-self-cwd-dotdot", "echo PWN > /proc/self/cwd/../out/new")
attack("proc-first-process-root", 'echo PWN > "/proc/1/root$OUT/new"', needs="needs leave to look at the first process")
attack("proc-parents-root", 'echo PWN > "/proc/$PPID/root$OUT/new"', wrap=lambda w: ["sh", "-c", '"$@"; exit $?', "parent"])
attack("proc-host-process-root", 'echo PWN > "/proc/$VICTIM/root$OUT/new"', victim=True)
attack("proc-host-process-cwd", 'echo PWN > "/proc/$VICTIM/cwd/../out/new"', victim=True)
attack("proc-host-process-descriptor", 'echo PWN > "/proc/$VICTIM/fd/$VICTIM_FD"', victim=True,
       effect=lambda w: os.path.getsize(w.host_dir + "/victim") and "the file behind a host descriptor was written")
attack("proc-every-root", """
    n=0; for p in /proc/[0-9]*; do [ $((n++)) -lt 400 ] && echo PWN > "$p/root$OUT/new"; done 2>/dev/null; true""")

# Other programs, other working directories.
attack("memfd-program", '"$ATTACK" memfd-exec "$OUT/new"')
attack("loader-as-program", 'for l in /lib64/ld-linux-*.so.2 /lib/ld-linux-*.so.*; do "$l" /bin/cp f "$OUT/new"; done')
attack("python-writes", """/usr/bin/python3 -c 'import os; open(os.environ["OUT"] + "/new", "w").write("x")'""")
attack("dd-in-place", 'printf PWN | dd of="$OUT/f" conv=notrunc')
attack("sed-in-place", "sed -i s/ORIG/PWN/ \"$OUT/f\"")
attack("copy-reflink", 'cp --reflink=auto f "$OUT/new"')
attack("tar-absolute-names", 'tar -xPf archive.tar', setup="""
    cd "$WS"; echo PWN > "$OUT/new"; tar -cPf archive.tar "$OUT/new"; rm "$OUT/new\"""")
attack("patch-with-dotdot", program="patch", run='patch -p0 -d "$OUT" < diff', setup="""
    printf -- '--- f\\n+++ f\\n@@ -1 +1 @@\\n-ORIG\\n+PWN\\n' > "$WS/diff\"""")
attack("git-init-outside", 'git init -q "$OUT/new"')
attack("compile-outside", 'echo "int main(void){return 0;}" | gcc -x c -o "$OUT/new" -', program="gcc")
attack("working-directory-outside", "echo PWN > new", cwd="out")
attack("working-directory-outside-unlink", "rm -f f; rmdir d", cwd="out")
attack("core-dump-outside", 'cd "$OUT"; ulimit -c unlimited; /usr/bin/python3 -c "import os; os.abort()"')

# Places that are everybody's.
attack("home-file", "echo PWN > ~/new", effect=present("home/new"))
attack("home-startup-file", "echo PWN >> ~/.bashrc; mkdir -p ~/.ssh; echo PWN >> ~/.ssh/authorized_keys; echo PWN >> ~/.gitconfig",
       effect=lambda w: os.listdir(w.home) and f"home holds {os.listdir(w.home)}")
attack("var-tmp-file", 'echo PWN > "/var/tmp/attack-$UNIQUE"', effect=present("/var/tmp/attack-{unique}"),
       undo=lambda w: remove("/var/tmp/attack-" + w.unique))
attack("etc-file", 'echo PWN > "/etc/attack-$UNIQUE"', effect=present("/etc/attack-{unique}"), needs=ROOT,
       undo=lambda w: remove("/etc/attack-" + w.unique))
attack("dev-file", 'echo PWN > "/dev/attack-$UNIQUE"', effect=present("/dev/attack-{unique}"), needs=ROOT,
       undo=lambda w: remove("/dev/attack-" + w.unique))
attack("device-written-that-is-not-there", 'echo PWN > "/dev/attack-$UNIQUE"', needs=ROOT,
       effect=lambda w: w.done.code == 0 and "the command believes that it wrote a device",
       undo=lambda w: remove("/dev/attack-" + w.unique))
attack("shared-memory-file", 'echo PWN > "/dev/shm/attack-$UNIQUE"', effect=present("/dev/shm/attack-{unique}"),
       undo=lambda w: remove("/dev/shm/attack-" + w.unique))


def remove(path):
    if os.path.lexists(path):
        os.remove(path)


def shared_memory(w):
    path = "/dev/shm/attack-" + w.unique
    with open(path, "w", encoding="utf-8") as f:
        f.write("ORIG")
    if os.getuid() == 0:
        os.chown(path, w.own_uid, w.own_uid)


def shared_memory_content(w):
    with open("/dev/shm/attack-" + w.unique, encoding="utf-8") as f:
        return f.read() != "ORIG" and "a program's shared memory was written"


attack("shared-memory-of-a-program", 'echo PWN > "/dev/shm/attack-$UNIQUE"', setup=shared_memory,
       effect=shared_memory_content, undo=lambda w: remove("/dev/shm/attack-" + w.unique))


def listened_fifo(w):
    os.mkfifo(w.out + "/fifo", 0o666)
    os.chmod(w.out + "/fifo", 0o666)
    w.note["fifo"] = os.open(w.out + "/fifo", os.O_RDWR | os.O_NONBLOCK)
    w.closers.append(lambda: os.close(w.note["fifo"]))


def came(fd):
    try:
        return os.read(fd, 16)
    except BlockingIOError:
        return b""


attack("fifo-with-a-reader", 'echo PWN > "$OUT/fifo"', setup=listened_fifo, effect=lambda w: came(w.note["fifo"]))


def terminal_text(w):
    os.set_blocking(w.tty_master, False)
    return came(w.tty_master)


attack("terminal-of-the-user", 'echo PWN > "$TERMINAL"', setup=lambda w: (w.open_tty(), w.note.update(t=w.tty_name)),
       env=lambda w: {"TERMINAL": w.note.get("t", "")}, effect=terminal_text)


attack("terminal-settings-of-the-user", '"$ATTACK" terminal-settings "$TERMINAL"',
       setup=lambda w: (w.open_tty(), w.note.update(t=w.tty_name, was=termios.tcgetattr(w.tty_fd))),
       env=lambda w: {"TERMINAL": w.note.get("t", "")},
       effect=lambda w: termios.tcgetattr(w.tty_fd) != w.note["was"] and "the user's terminal is set otherwise")


def kernel_log(w):
    fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    try:
        while True:
            if f"{w.unique};".encode() in os.read(fd, 8192):
                return "the kernel's log was written"
    except OSError:
        return None
    finally:
        os.close(fd)


attack("kernel-log", 'echo "attack $UNIQUE;" > /dev/kmsg', effect=kernel_log, users=("root",))
attack("kernel-log-by-a-new-node", '"$ATTACK" node n c 1 11; echo "attack $UNIQUE;" > n', effect=kernel_log, users=("root",))
attack("kernel-log-by-a-node-in-tmp", '"$ATTACK" node "/tmp/$UNIQUE" c 1 11; echo "attack $UNIQUE;" > "/tmp/$UNIQUE"',
       effect=kernel_log, users=("root",), undo=lambda w: remove("/tmp/" + w.unique))

# What is shared on purpose, and what cannot be told apart.
CASES.append(writes("temporary-files-are-the-hosts", 'echo x > "/tmp/attack-$UNIQUE"', present("/tmp/attack-{unique}"),
                    undo=lambda w: remove("/tmp/attack-" + w.unique)))
CASES.append(Case("hard-link-made-before", {READ_ONLY: REFUSED, WORKSPACE_WRITE: DECIDED}, "echo PWN > alias", outside,
                  setup='ln "$OUT/f" "$WS/alias"',
                  about="a second name made by somebody else is a file of the workspace like any other"))


def hold_lock(w):
    import fcntl
    import time
    child = w.start(w.argv(f'"$ATTACK" flock "{w.out}/f"'), cwd=w.ws)
    w.children.append(child)
    w.note["held"] = False
    with open(w.out + "/f", "rb") as f:
        for _ in range(40):
            try:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                fcntl.flock(f, fcntl.LOCK_UN)
            except BlockingIOError:
                w.note["held"] = True
                break
            time.sleep(0.05)
    for pid in w.processes():
        w.kill(pid)


CASES.append(decided("lock-outside-file", "", lambda w: w.note["held"] and "a host program would have to wait",
                     "a lock changes no file; whoever may read a file may lock it", drive=hold_lock))
CASES.append(decided("read-sets-access-time", 'cat "$OUT/f"', lambda w: os.stat(w.out + "/f").st_atime > 1e9 and "access time",
                     "reading is allowed", setup='touch -a -d 2001-01-01 "$OUT/f"'))
CASES.append(decided("setuid-copy-in-the-workspace", "cp /bin/true s && chmod 4755 s",
                     both(present("ws/s"), lambda w: os.stat(w.ws + "/s").st_mode & 0o4000 and "setuid"),
                     "the user's own file with the user's own rights; it is nobody else's program"))

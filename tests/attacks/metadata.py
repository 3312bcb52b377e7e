"""Mode, owner, times, attributes and flags: by path, by descriptor, by every call there is; and the same inside, where
it must work as ever."""
import os

from case import DECIDED, READ_ONLY, REFUSED, ROOT, WORKSPACE_WRITE, Case, describe, outside, prints, refused, where_present, works, writes

BY_PATH = ("chmod", "chmod-setuid", "fchmodat", "fchmodat2", "chown", "lchown", "fchownat", "utimensat", "utimes", "utime",
           "futimesat", "setxattr", "lsetxattr", "setxattrat", "removexattr", "lremovexattr", "removexattrat", "acl",
           "file-setattr")
BY_DESCRIPTOR = ("fchmod", "fchmod-empty-path", "chmod-proc-fd", "fchown", "futimens", "utimensat-null", "fsetxattr",
                 "fremovexattr", "set-flags", "set-flags-high", "set-fsxattr", "set-version", "set-version-ext4",
                 "fchownat-empty-path")
NEWER = {"fchmodat2": "Linux 6.6", "fchmod-empty-path": "Linux 6.6", "setxattrat": "Linux 6.13", "removexattrat": "Linux 6.13",
         "file-setattr": "Linux 6.17", "set-flags-high": "the kernel looks at 32 bits or refuses",
         "set-version": "not every file system has it", "set-version-ext4": "ext4 has it, in some formats"}


def differs(where):
    """Anything of that one file, ctime included: a change to what it was already counts."""
    def effect(w):
        path = w.path(where)
        now = describe(path)
        before = (w.before_out if where.startswith("out") else w.before_ws)[path]
        changed = [key for key in now if now[key] != before[key]]
        return changed and f"{where}: {changed[0]} changed"
    return effect


def mode_is(where, mode):
    return where_present(where, lambda w: os.stat(w.path(where)).st_mode & 0o7777 == mode and f"{where} has mode {mode:o}")


CASES = []
for how in BY_PATH:
    needs = f"needs {NEWER[how]}" if how in NEWER else ""
    CASES.append(refused(how, f'"$ATTACK" meta {how} "$OUT/f"', differs("out/f"), needs=needs))
    CASES.append(writes(f"{how}-inside", f'"$ATTACK" meta {how} f', differs("ws/f"), needs=needs))
for how in BY_DESCRIPTOR:
    needs = f"needs {NEWER[how]}" if how in NEWER else ""
    CASES.append(refused(how, f'"$ATTACK" meta-open {how} "$OUT/f"', differs("out/f"), needs=needs))
    CASES.append(writes(f"{how}-inside", f'"$ATTACK" meta-open {how} f', differs("ws/f"), needs=needs))

# Other ways to the same file.
CASES += [
    refused("chmod-through-link", "chmod 777 link", setup='ln -s "$OUT/f" "$WS/link"'),
    refused("chmod-through-folder-link", "chmod 777 link/f", setup='ln -s "$OUT" "$WS/link"'),
    refused("chmod-dotdot", "chmod 777 ../out/f"),
    refused("chmod-from-outside-directory", "chmod 777 f", cwd="out"),
    refused("chmod-after-cd", 'cd "$OUT" && chmod 777 f'),
    refused("chmod-by-proc-self-root", 'chmod 777 "/proc/self/root$OUT/f"'),
    refused("chmod-by-proc-self-cwd", "chmod 777 /proc/self/cwd/../out/f"),
    refused("chmod-by-path-descriptor", '"$ATTACK" meta-opath chmod-proc-fd "$OUT/f"'),
    refused("chmod-by-own-descriptor", 'exec 9< "$OUT/f"; chmod 777 /proc/self/fd/9 /dev/fd/9'),
    refused("chmod-by-dirfd", 'exec 9< "$OUT"; chmod 777 /proc/self/fd/9/f'),
    refused("chmod-by-another-process-descriptor", 'sleep 1 9< "$OUT/f" & sleep 0.1; chmod 777 "/proc/$!/fd/9"'),
    refused("chmod-through-link-over-proc", 'ln -s /proc/self/cwd/../out l; chmod 777 l/f'),
    refused("chmod-folder", 'chmod 000 "$OUT/d"'),
    refused("chmod-secret-folder", 'chmod 777 "$OUT/.ssh"', setup='mkdir -m 700 "$OUT/.ssh"'),
    refused("chmod-fifo", 'chmod 777 "$OUT/p"', setup='mkfifo -m 600 "$OUT/p"'),
    refused("encryption-policy", '"$ATTACK" meta-open encryption-policy "$OUT/d"', needs="needs a file system with encryption"),
    refused("verity", '"$ATTACK" meta-open verity "$OUT/f"', needs="needs a file system with verity"),
    refused("chmod-recursive", 'chmod -R a+rwx "$OUT"'),
    refused("touch", 'touch -c "$OUT/f"'),
    refused("touch-link-itself", 'touch -h "$OUT/l"', setup='ln -s f "$OUT/l"'),
    refused("chown-link-itself", '"$ATTACK" meta lchown "$OUT/l"', setup='ln -s f "$OUT/l"'),
    refused("chown-to-another", 'chown 1:1 "$OUT/f"', needs=ROOT),
    refused("default-acl-of-folder", '"$ATTACK" meta acl "$OUT/d"'),
    refused("chmod-outside-raced-by-name", '"$ATTACK" race-chmod "$WS/f" "$OUT/f"', outside, needs="a race is not always won"),
    refused("chmod-outside-raced-by-link", """
        "$ATTACK" repeat 2000 exchange real link 2>/dev/null & "$ATTACK" repeat 4000 meta chmod real/f 2>/dev/null; wait""",
            setup='mkdir "$WS/real"; touch "$WS/real/f"; ln -s "$OUT" "$WS/link"', effect=outside,
            needs="a race is not always won"),
    refused("chmod-in-a-changed-root", '"$ATTACK" in-userns chroot-chmod "$OUT" "$WS/f"', outside,
            setup='mkdir -p "$OUT$WS"; touch "$OUT$WS/f"'),
    refused("chmod-by-a-threads-descriptor", '"$ATTACK" thread-fchmod "$WS/f" "$OUT/f"', outside),
    refused("chmod-from-a-threads-directory", '"$ATTACK" thread-chmod "$OUT" f', outside),
    refused("chmod-as-another-user", "setpriv --reuid=65534 --clear-groups chmod 777 f", differs("ws/f"), users=("root",),
            needs="nobody may, sandbox or not"),
    refused("chmod-of-dev-null", 'chmod 667 /dev/null', needs=ROOT, alone="null",
            effect=lambda w: os.stat("/dev/null").st_mode & 0o777 == 0o667 and "the host's /dev/null",
            undo=lambda w: os.getuid() == 0 and os.chmod("/dev/null", 0o666)),
    refused("chmod-of-standard-input", '"$ATTACK" meta-fd fchmod 0', needs=ROOT, alone="null",
            effect=lambda w: os.stat("/dev/null").st_mode & 0o777 == 0o777 and "the host's /dev/null",
            undo=lambda w: os.getuid() == 0 and os.chmod("/dev/null", 0o666)),
    Case("chmod-of-hard-link-made-before", {READ_ONLY: REFUSED, WORKSPACE_WRITE: DECIDED}, "chmod 777 alias", differs("out/f"),
         setup='ln "$OUT/f" "$WS/alias"', about="a second name made by somebody else is a file of the workspace like any other"),
]

# Inside: as without a sandbox, errors too.
ERRORS = """/usr/bin/python3 -c '
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def call(*args):
    ctypes.set_errno(0); libc.chmod(*args); return errno.errorcode.get(ctypes.get_errno(), "OK")
print(call(b"missing", 0o600), call(b"f/x", 0o600), call(ctypes.c_void_p(1), 0o600), call(b"", 0o600), call(b"a" * 300, 0o600))'"""
CASES += [
    writes("chmod-by-relative-folder", "cd a/b && chmod 600 ../../f", mode_is("ws/f", 0o600), setup='mkdir -p "$WS/a/b"'),
    writes("chmod-through-link-inside", "chmod 600 link", mode_is("ws/f", 0o600), setup='ln -s f "$WS/link"'),
    writes("chmod-through-absolute-link-inside", "chmod 600 link", mode_is("ws/f", 0o600), setup='ln -s "$WS/f" "$WS/link"'),
    writes("chmod-recursive-inside", "chmod -R go-rwx tree", mode_is("ws/tree/a/b", 0o700),
           setup='mkdir -p "$WS/tree/a/b"; touch "$WS"/tree/{1..50}; chmod 755 "$WS/tree/a/b"'),
    writes("chmod-inside-from-outside", 'cd "$OUT" && chmod 600 "$WS/f"', mode_is("ws/f", 0o600)),
    writes("touch-inside", "touch -d 2001-01-01 f", lambda w: os.stat(w.ws + "/f").st_mtime < 1e9 and "old"),
    writes("chown-to-another-inside", "chown 1:1 f", lambda w: os.stat(w.ws + "/f").st_uid == 1 and "owned by 1",
           users=("root",)),
    writes("executable-bit", "printf '#!/bin/sh\\necho ran > result\\n' > s; chmod +x s; ./s",
           lambda w: os.path.exists(w.ws + "/result")),
    writes("copy-with-metadata", "cp -a f copy", where_present("ws/copy",
                                                               lambda w: os.stat(w.ws + "/copy").st_mtime == 1600000000)),
    writes("install-with-mode", "install -m 711 f copy", mode_is("ws/copy", 0o711)),
    writes("unpack-with-metadata", "tar -xpf a.tar", mode_is("ws/deep/x", 0o640),
           setup='cd "$WS"; mkdir deep; echo x > deep/x; chmod 640 deep/x; tar -cf a.tar deep; rm -r deep'),
    writes("chmod-in-tmp", 't=$(mktemp) && chmod 640 "$t" && cp -p "$t" copy; rm -f "$t"', mode_is("ws/copy", 0o640)),
    writes("chmod-of-removed-file", """/usr/bin/python3 -c '
import os; fd = os.open("gone", os.O_CREAT | os.O_RDWR, 0o600); os.unlink("gone"); os.fchmod(fd, 0o640)
os.utime(fd, (1, 1)); open("result", "w").write(oct(os.fstat(fd).st_mode))'""",
           lambda w: open(w.ws + "/result", encoding="utf-8").read() == "0o100640"
           if os.path.exists(w.ws + "/result") else None),
    writes("times-survive-many-calls", """/usr/bin/python3 -c '
import os
for i in range(300): os.utime("f", (i, i)); os.chmod("f", 0o600 + i % 8)'""", lambda w: os.stat(w.ws + "/f").st_mtime == 299),
    writes("metadata-in-parallel", """
        for i in 1 2 3 4; do cp f "p$i"; "$ATTACK" repeat 300 meta chmod "p$i" & done; wait""", mode_is("ws/p4", 0o777)),
    works("errors-of-chmod", ERRORS, prints("ENOENT ENOTDIR EFAULT ENOENT ENAMETOOLONG"), modes=(WORKSPACE_WRITE,)),
]

"""Ordinary work that a sandbox must not break. What writes the workspace is refused without a writable one."""

from case import WORKSPACE_WRITE, holds, prints, works, writes

CASES = []
ONLY_WRITE = (WORKSPACE_WRITE,)


def can(name, run, text="yes", **more):
    CASES.append(works(name, run, prints(text), **more))


def makes(name, run, text="yes", **more):
    """Ends by writing `text` to ws/result."""
    CASES.append(writes(name, run, holds("ws/result", text), **more))


# The shell.
can("here-document", "cat <<X\nyes\nX")
can("here-string", 'read -r a <<< yes; echo "$a"')
makes("large-here-document", "eval \"$(printf 'wc -c > result <<X\\n'; head -c 200000 /dev/zero | tr '\\0' a | fold -w 99; printf '\\nX\\n')\"", "202")
can("process-substitution", "diff <(echo 1) <(echo 1) && cat <(echo yes)")
can("output-process-substitution", "echo yes > >(cat); sleep 0.1")
can("pipe-to-dev-stdout", "(echo yes > /dev/stdout) | cat")
can("dev-stdout", "echo yes > /dev/stdout")
can("dev-stderr", "echo no > /dev/stderr; echo yes")
can("dev-null", "echo x > /dev/null; : < /dev/null; echo yes 2> /dev/null")
can("dev-zero-and-random", "head -c4 /dev/zero | wc -c; head -c4 /dev/urandom | wc -c", "4\n4")
can("dev-full", "echo x > /dev/full 2>/dev/null || echo yes", modes=ONLY_WRITE)
can("background-and-wait", "for i in 1 2 3; do sleep 0.01 & done; wait && echo yes")
can("many-descriptors", "for i in {20..80}; do eval \"exec $i</dev/null\"; done; echo yes")
can("subshell-signals", "trap 'echo yes' USR1; kill -USR1 $$")
can("umask-kept", "umask", "0027", wrap=lambda w: ["sh", "-c", 'umask 027; exec "$@"', "umask"])
can("time-limit-program", "timeout 5 true && setsid -w true && echo yes")
can("large-output", "head -c 3000000 /dev/zero | tr '\\0' a | wc -c; echo yes", "3000000\nyes")
makes("trap-at-exit", "trap 'echo yes > result' EXIT; touch t")
makes("fifo-inside", "mkfifo p; echo yes > p & cat p > result")
makes("lock-file", "flock lock -c 'echo yes > result'")
can("lock-a-readable-file", "flock f -c 'echo yes'")
makes("temporary-file", 't=$(mktemp) && echo yes > "$t" && cp "$t" result && rm "$t"')
makes("temporary-folder", 't=$(mktemp -d) && echo yes > "$t/x" && mv "$t/x" result && rmdir "$t"')
makes("tree-of-folders", "mkdir -p a/b/c && echo yes > a/b/c/f && mv a/b a/z && mv a/z/c/f result && rm -r a")
makes("hard-link-inside", "mkdir a; ln f a/f2 && echo yes > a/f2 && cp f result")
makes("rename-between-folders", "mkdir a b; echo yes > a/x; mv a/x b/x && mv b/x result")
makes("exchange-inside", 'echo yes > result; echo no > x; "$ATTACK" exchange x result; "$ATTACK" exchange x result')
makes("unnamed-file-inside", '"$ATTACK" tmpfile . result && echo yes >> result')
makes("symlinks-inside", "ln -s result l && echo yes > l && [ -L l ]")
makes("sparse-and-truncate", "truncate -s 1M s && truncate -s 0 s && echo yes > result")
makes("standard-input-file", "cat > result", stdin="host/in", setup='echo yes > "$BASE/host/in"')

# Reading is allowed everywhere.
can("read-outside", 'cat "$OUT/f"', "ORIG")
can("read-system", "head -c 4 /etc/passwd | wc -c; [ -r /etc/hosts ] && [ -d /usr/include -o -d /usr/lib ] && echo yes",
    "4\nyes")
can("name-service-files", "cat /etc/resolv.conf /etc/nsswitch.conf > /dev/null 2>&1; getent hosts localhost > /dev/null && echo yes")
can("user-names", 'id -un > /dev/null && [ "$(stat -c %u .)" = "$(id -u)" ] && echo yes')
can("processes-listed", "ps -e > /dev/null && echo yes")
can("proc-files", "nproc > /dev/null && grep -q MemTotal /proc/meminfo && head -1 /proc/self/mountinfo > /dev/null && echo yes")
can("locale", "LC_ALL=C.UTF-8 bash -c 'x=ä; echo ${#x}'", "1")
can("time-zone", "TZ=Asia/Tokyo date -d @0 +%H", "09")
can("find-and-grep", "find . -maxdepth 1 -name f -exec grep -l MINE {} +", "./f")
can("own-name", "echo worker > /proc/self/comm && echo yes", modes=ONLY_WRITE)

# Programs.
can("xargs-in-parallel", "seq 12 | xargs -P 4 -n 1 true && echo yes")
makes("sort-with-temporary-files", "seq 60000 | sort -R -S 500K | sort -n -S 500K | tail -1 > result", "60000")
makes("sed-in-place-inside", "sed -i s/MINE/yes/ f && cp f result")
makes("perl-in-place", "perl -pi -e 's/MINE/yes/' f && cp f result", program="perl")
makes("patch-inside", "echo yes > new; diff -u f new > d; patch -s f < d && cp f result", program="patch")
makes("tar-pack-and-unpack", "mkdir a && cp f a && tar -czf a.tgz a && rm -r a && tar -xzf a.tgz && test -f a/f && echo yes > result", program="tar")
makes("install-program", "install -m 755 f x && cp --preserve=all x y && echo yes > result")
makes("compile-and-run", "printf 'int main(void){return 7;}' > m.c && gcc -o m m.c; ./m; [ $? = 7 ] && echo yes > result",
      program="gcc")
makes("make-in-parallel", "printf 'all: a1 a2 a3 a4\\na%%:\\n\\t@echo $@ > $@\\n' > Makefile && make -s -j4 && cat a1 a2 a3 a4 | wc -l > result", "4", program="make")
can("python-imports", "/usr/bin/python3 -c 'import json, decimal, ssl; print(\"yes\")'")
makes("python-temporary-file", """/usr/bin/python3 -c '
import tempfile
with tempfile.NamedTemporaryFile("w+") as f, tempfile.TemporaryDirectory(): f.write("yes"); f.seek(0); open("result", "w").write(f.read())'""")
makes("python-environment", "/usr/bin/python3 -m venv --without-pip v && v/bin/python -c 'print(\"yes\")' > result")
makes("python-database", """/usr/bin/python3 -c '
import sqlite3
c = sqlite3.connect("d"); c.execute("pragma journal_mode=wal"); c.execute("create table t(a)"); c.execute("insert into t values (1)"); c.commit()
open("result", "w").write("yes")'""")
can("python-threads-and-processes", """/usr/bin/python3 -c '
import concurrent.futures as f, subprocess
with f.ThreadPoolExecutor(2) as p: list(p.map(str, range(9)))
print(subprocess.check_output(["echo", "yes"], text=True).strip())'""")
can("python-multiprocessing", """/usr/bin/python3 -c '
import multiprocessing as m
with m.Pool(2) as p: print("yes" if p.map(abs, [-1, -2]) == [1, 2] else "no")'""", modes=ONLY_WRITE)
makes("python-memory-map", """/usr/bin/python3 -c '
import mmap
f = open("result", "w+b"); f.truncate(4096); m = mmap.mmap(f.fileno(), 4096); m[:3] = b"yes"; m.flush()'""")
makes("python-rename-and-sync", """/usr/bin/python3 -c '
import os
f = open("x", "w"); f.write("yes"); f.flush(); os.fsync(f.fileno()); os.replace("x", "result"); d = os.open(".", os.O_RDONLY); os.fsync(d)'""")
makes("node-writes", "node -e 'const fs = require(\"fs\"); fs.mkdirSync(\"a\"); fs.copyFileSync(\"f\", \"a/f\"); fs.writeFileSync(\"result\", \"yes\")'", program="node")
makes("node-installs", "cd app && npm install --offline --no-audit --no-fund --cache ../cache > ../log 2>&1 && test -e node_modules/dep/package.json && echo yes > ../result",
      setup="""mkdir -p "$WS/app/dep"; cd "$WS/app"; echo '{"name":"dep","version":"1.0.0"}' > dep/package.json
      echo '{"name":"x","version":"1.0.0","dependencies":{"dep":"file:./dep"}}' > package.json""", modes=ONLY_WRITE,
      program="npm", limit=60)
can("shared-memory-changed", 'f=/dev/shm/attack-$UNIQUE; echo x > $f && chmod 600 $f && touch -d 2001-01-01 $f && stat -c %a-%Y $f; rm -f $f',
    "600-978307200", env={"TZ": "UTC"}, modes=ONLY_WRITE)
can("terminal-changed", "script -qec 'chmod 620 $(tty) && stat -c %a $(tty)' /dev/null", "620")
can("shared-memory", 'echo yes > /dev/shm/attack-$UNIQUE && cat /dev/shm/attack-$UNIQUE; rm /dev/shm/attack-$UNIQUE',
    modes=ONLY_WRITE)
can("trace-a-program", "strace -f -o /dev/null true && echo yes", program="strace")
can("debug-a-program", "gdb -q -batch -ex run /bin/true 2>/dev/null | grep -o 'exited normally'", "exited normally",
    program="gdb")
can("user-namespace", "unshare -r id -u", "0")
can("memory-file", "/usr/bin/python3 -c 'import os; fd = os.memfd_create(\"x\"); os.write(fd, b\"yes\"); print(os.pread(fd, 3, 0).decode())'")
can("large-memory", "/usr/bin/python3 -c 'import mmap; m = mmap.mmap(-1, 1 << 28); m[0] = 1; print(\"yes\")'")
CASES.append(writes("next-call-sees-it", "", lambda w: w.done.out == "one\n" and "seen",
                    drive=lambda w: (w.run("echo one > made; echo one > /tmp/attack-$UNIQUE"),
                                     w.run("cat made && rm /tmp/attack-$UNIQUE"))))

# Files of several owners, as an archive unpacked by root leaves them.
makes("files-of-another-owner", "mkdir q && chown 1234:1234 q && echo yes > q/f && mv q/f result", users=("root",))

"""Odd ways to be started: workspaces, environments, working directories, arguments, and texts that look like failures."""
import os
import shutil

from case import WORKSPACE_WRITE, anything, exits, inside, outside, present, prints, refused, works, writes

CASES = []
ONLY_WRITE = (WORKSPACE_WRITE,)
UNAVAILABLE = 5


def ran(w):
    return w.done.code != UNAVAILABLE and f"it ran, exit code {w.done.code}"


# -- workspaces --------------------------------------------------------------------------------------------------------

CASES += [
    writes("workspace-through-link", "echo x > made", present("ws/made"), setup='ln -s ws "$BASE/link"',
           root=lambda w: w.base + "/link"),
    writes("workspace-through-link-and-dotdot", "echo x > made", present("ws/made"),
           setup='ln -s ws/deep "$BASE/link"; mkdir "$WS/deep"',
           root=lambda w: w.base + "/link/.."),
    writes("working-directory-through-link", "echo x > made", present("ws/made"), setup='ln -s ws "$BASE/link"', cwd="link"),
    writes("working-directory-below", "echo x > made", present("ws/a/b/made"), setup='mkdir -p "$WS/a/b"', cwd="ws/a/b"),
    refused("workspace-is-everything", 'echo PWN > "$OUT/new"', outside, root=lambda w: "/"),
    refused("workspace-is-everything-runs-nothing", "true", ran, root=lambda w: "/", modes=ONLY_WRITE),
    refused("workspace-is-proc", "true", ran, root=lambda w: "/proc", modes=ONLY_WRITE),
    refused("workspace-is-dev", "true", ran, root=lambda w: "/dev", modes=ONLY_WRITE),
    refused("workspace-is-a-file", "true", ran, root=lambda w: w.ws + "/f", modes=ONLY_WRITE),
    refused("workspace-is-missing", "true", lambda w: w.done.code == 0 and "ran", root=lambda w: w.base + "/missing"),
    refused("workspace-is-the-state", "true", ran, root=lambda w: w.base + "/state/acp-agent", modes=ONLY_WRITE,
            setup='mkdir -p "$BASE/state/acp-agent"'),
    writes("workspace-is-home", "echo x > ~/made", present("home/made"), root=lambda w: w.home, cwd="home"),
]
ODD = {"spaces": "a  b", "quotes": "a'b\"c", "newline": "a\nb", "dash": "-x", "dollar": "$(id)`id`",
       "bytes": "a\udcff\udcfeb", "long": "n" * 200}
for name, folder in ODD.items():
    CASES.append(writes(f"workspace-name-{name}", "echo x > made", lambda w, f=folder: os.path.exists(f"{w.base}/{f}/made")
                        and "made",
                        setup=lambda w, f=folder: (os.mkdir(f"{w.base}/{f}"), os.chown(f"{w.base}/{f}", w.own_uid, -1)),
                        root=lambda w, f=folder: f"{w.base}/{f}", cwd=folder))

# -- the agent's own files ---------------------------------------------------------------------------------------------

STATE_HERE = {"XDG_STATE_HOME": None}


def state_below_home(name, run, effect):
    CASES.append(refused(name, run, effect, root=lambda w: w.home, cwd="home", env=STATE_HERE,
                         setup='mkdir -p "$HOME/.local/state/acp-agent/sessions"; echo x > "$HOME/.local/state/acp-agent/sessions/log"'))


state_below_home("state-folder-written", "echo PWN > ~/.local/state/acp-agent/new", present("home/.local/state/acp-agent/new"))
state_below_home("state-log-written", "echo PWN > ~/.local/state/acp-agent/sessions/log",
                 lambda w: open(w.home + "/.local/state/acp-agent/sessions/log", encoding="utf-8").read() != "x\n"
                 and "the log was written")
for name, run in (("renamed", '"$ATTACK" rename ~/.local/state/acp-agent ~/old'),
                  ("moved", "mv ~/.local/state/acp-agent ~/old"),
                  ("removed", "rm -rf ~/.local"), ("parent-renamed", '"$ATTACK" rename ~/.local ~/old'),
                  ("parent-exchanged", 'mkdir -p ~/z/state/acp-agent; "$ATTACK" exchange ~/z ~/.local')):
    state_below_home("state-folder-" + name, run,
                     lambda w: not os.path.exists(w.home + "/.local/state/acp-agent/sessions/log")
                     and "the log is not where it was")
CASES.append(refused("state-folder-in-tmp", 'echo PWN > "/tmp/attack-$UNIQUE/acp-agent/new"',
                     lambda w: os.path.exists(f"/tmp/attack-{w.unique}/acp-agent/new") and "written",
                     env=lambda w: {"XDG_STATE_HOME": "/tmp/attack-" + w.unique},
                     setup='mkdir -p "/tmp/attack-$UNIQUE/acp-agent"',
                     undo=lambda w: shutil.rmtree("/tmp/attack-" + w.unique, ignore_errors=True)))
CASES.append(refused("configuration-when-home-is-the-workspace",
                     "mkdir -p ~/.config/acp-agent && echo '# PWN' > ~/.config/acp-agent/cordis.yml",
                     present("home/.config/acp-agent/cordis.yml"), root=lambda w: w.home, cwd="home"))
CASES.append(refused("startup-files-when-home-is-the-workspace", "echo PWN >> ~/.bashrc; echo PWN >> ~/.profile",
                     lambda w: os.path.getsize(w.home + "/.bashrc") and "written", root=lambda w: w.home, cwd="home",
                     setup=': > "$HOME/.bashrc"; : > "$HOME/.profile"'))


def installed_here(w):
    """The agent and its helpers, in the workspace: somebody who works on it."""
    os.mkdir(w.ws + "/bin")
    folder = os.path.dirname(w.tools.agent[-1])
    for name in ("landlock-run", "call-init"):
        shutil.copy(os.path.join(folder, name), w.ws + "/bin")
    try:
        os.link(w.tools.agent[-1], w.ws + "/bin/acp-agent")
    except OSError:
        shutil.copy(w.tools.agent[-1], w.ws + "/bin/acp-agent")
    os.chown(w.ws + "/bin", w.own_uid, -1)
    w.note["before"] = sizes(w)


def sizes(w):
    return {n: os.path.exists(f"{w.ws}/bin/{n}") and os.path.getsize(f"{w.ws}/bin/{n}")
            for n in ("acp-agent", "landlock-run", "call-init")}


def changed(*names):
    def effect(w):
        now = sizes(w)
        return [n for n in names if now[n] != w.note["before"][n]]
    return effect


def run_installed(w):
    argv = w.argv(w.case.run)
    if not w.baseline:
        argv[argv.index(w.tools.agent[-1])] = w.ws + "/bin/acp-agent"
    w.done = w.call(argv, cwd=w.ws)


for name, run, effect in (
        ("helpers-in-the-workspace-replaced", "cp f x; mv x bin/landlock-run; cp f x; mv x bin/call-init",
         changed("landlock-run", "call-init")),
        ("helpers-folder-renamed", "mv bin old; mkdir bin; echo x > bin/landlock-run", changed("landlock-run", "call-init")),
        ("agent-in-the-workspace-replaced", "cp f x; mv x bin/acp-agent", changed("acp-agent"))):
    CASES.append(refused(name, run, effect, setup=installed_here, drive=run_installed))

# -- protected paths -------------------------------------------------------------------------------------------------------

COMPOSITION = """- id: policy
  name: sandbox-policy
  config:
    mode: workspace-write
    protect: [{paths}]
- id: sandbox
  name: sandbox-local
- id: bash
  name: bash-sandbox
"""


def protecting(name, paths, run, effect, setup, **more):
    def prepare(w):
        with open(w.base + "/cordis.yml", "w", encoding="utf-8") as f:
            f.write(COMPOSITION.format(paths=paths))
        done = w.host(setup, w.ws)
        if done.code != 0:
            raise RuntimeError(done.err)
    CASES.append(refused("protected-" + name, run, effect, setup=prepare,
                         env=lambda w: {"ACP_AGENT_CONFIG": w.base + "/cordis.yml"}, **more))


TREE = 'mkdir -p "$WS/a/b"; echo x > "$WS/a/b/c"'


def protected_changed(w):
    path = w.ws + "/a/b/c"
    return not os.path.isfile(path) or os.path.islink(w.ws + "/a") or open(path, encoding="utf-8").read() != "x\n"


protecting("file-written", "a/b/c", "echo PWN > a/b/c", protected_changed, TREE)
protecting("file-replaced", "a/b/c", "cp f x; mv -f x a/b/c", protected_changed, TREE)
protecting("file-removed", "a/b/c", "rm -f a/b/c", protected_changed, TREE)
protecting("folder-written", "a/b", "echo PWN > a/b/new", present("ws/a/b/new"), TREE)
protecting("parent-renamed", "a/b", "mv a old; mkdir -p a/b; echo PWN > a/b/c", protected_changed, TREE)
protecting("parent-exchanged", "a/b", 'mkdir -p z/b; echo PWN > z/b/c; "$ATTACK" exchange z a', protected_changed, TREE)
protecting("parent-linked", "a/b", "mv a old; ln -s old a", protected_changed, TREE)
protecting("path-planted-as-link", "cfg/new", "true", outside, 'ln -s "$OUT" "$WS/cfg"',
           needs="only a runner makes what it mounts on")
protecting("path-planted-as-old-root", "cfg/new", "true", outside, 'ln -s "/oldroot$OUT" "$WS/cfg"',
           needs="only a runner makes what it mounts on")
protecting("path-planted-as-dangling-link", "cfg", "true", outside, 'ln -s "$OUT/new" "$WS/cfg"',
           needs="only a runner makes what it mounts on")
protecting("path-missing-leaves-no-stub", ".bashrc", "true", inside, "true", needs="only a runner leaves a stub")
protecting("many-paths", ", ".join(f"a/n{i}" for i in range(400)), "echo PWN > a/n399",
           lambda w: os.path.getsize(w.ws + "/a/n399"),
           'mkdir a; for i in {0..399}; do : > a/n$i; done')
protecting("below-a-file", ".git/hooks", "true", inside, 'echo "gitdir: x" > "$WS/.git"', needs="only a runner leaves a stub")

# -- environments ------------------------------------------------------------------------------------------------------


def script(path):
    return lambda w: (open(w.path(path), "w", encoding="utf-8").write(f'echo PWN > "{w.out}/new"\n'))


CASES += [
    refused("bash-env", "true", anything, env=lambda w: {"BASH_ENV": w.host_dir + "/start"}, setup=script("host/start")),
    refused("shell-env", "sh -ic true", anything, env=lambda w: {"ENV": w.host_dir + "/start"}, setup=script("host/start")),
    refused("exported-function", "ls", anything, env=lambda w: {"BASH_FUNC_ls%%": '() { echo PWN > "$OUT/new"; }'}),
    refused("python-startup", "/usr/bin/python3 -c pass", anything, env=lambda w: {"PYTHONPATH": w.host_dir},
            setup=lambda w: open(w.host_dir + "/sitecustomize.py", "w",
                                 encoding="utf-8").write(f"open('{w.out}/new', 'w').write('x')")),
    refused("programs-of-path", "true", anything, env=lambda w: {"PATH": w.ws + "/bin:" + "/usr/bin:/bin"}, setup="""
        mkdir "$WS/bin"; for n in bwrap landlock-run call-init bash sh env acp-agent; do
          printf '#!/bin/dash\\necho PWN > "%s/new"\\n' "$OUT" > "$WS/bin/$n"; chmod +x "$WS/bin/$n"; done"""),
    refused("key-names-are-dropped", "env", lambda w: "s3cret" in w.done.out and "printed",
            env={"MY_API_KEY": "s3cret", "DB_PASSWORD": "s3cret"}),
    works("home-unset", "echo yes", prints("yes"), env={"HOME": None}),
    works("path-unset", "echo yes", prints("yes"), env={"PATH": "/usr/bin:/bin"}),
    works("variables-come-through", 'echo "$GREETING"', prints("a b"), env={"GREETING": "a b"}),
]
TMPDIRS = (
    ("missing", lambda w: w.base + "/none"), ("everything", lambda w: "/"), ("home", lambda w: w.home),
    ("relative", lambda w: "../out"),
    ("dev", lambda w: "/dev"), ("proc", lambda w: "/proc/self/cwd"), ("ancestor", lambda w: w.base), ("empty", lambda w: ""),
    ("file", lambda w: w.out + "/f"), ("state", lambda w: w.base + "/state/acp-agent"),
    ("linked-home", lambda w: w.base + "/tolink"),
)
for name, value in TMPDIRS:
    CASES.append(refused(f"tmpdir-{name}-opens-nothing",
                         'echo PWN > "$OUT/new"; echo PWN > ~/new; mkdir "$TMPDIR/new"; echo PWN > "$BASE/new"',
                         lambda w: outside(w) or os.path.lexists(w.home + "/new") or os.path.lexists(w.base + "/new"),
                         env=lambda w, v=value: {"TMPDIR": v(w)}, setup='ln -s "$HOME" "$BASE/tolink"'))
    CASES.append(writes(f"tmpdir-{name}-leaves-one", 't=$(mktemp) && echo x > made; rm -f "$t"', present("ws/made"),
                        setup='ln -s "$HOME" "$BASE/tolink"',
                        env=lambda w, v=value: {"TMPDIR": v(w)}, needs="mktemp alone needs a good one"))
CASES.append(writes("tmpdir-of-ones-own", 't=$(mktemp) && echo "$t" > made', lambda w: os.path.exists(w.ws + "/made")
                    and open(w.ws + "/made", encoding="utf-8").read().startswith(w.base + "/own tmp/"),
                    env=lambda w: {"TMPDIR": w.base + "/own tmp"}, setup='mkdir "$BASE/own tmp"'))

# -- working directories -----------------------------------------------------------------------------------------------

GONE = 'mkdir "$1"; cd "$1"; rmdir "$1"; shift; exec "$@"'
CASES += [
    refused("working-directory-deleted", "true", lambda w: w.done.code == 0 and "it ran somewhere",
            wrap=lambda w: ["bash", "-c", GONE, "gone", w.base + "/gone"]),
    refused("working-directory-not-visible", "pwd; echo PWN > made",
            lambda w: w.done.out.strip() not in ("", "/dev/shm/attack-" + w.unique) and "it ran in " + w.done.out.strip(),
            cwd="/dev/shm/attack-{unique}", setup='mkdir "/dev/shm/attack-$UNIQUE"', needs="only a runner moves it",
            undo=lambda w: shutil.rmtree("/dev/shm/attack-" + w.unique, ignore_errors=True)),
    works("working-directory-kept", "pwd -P", lambda w: w.done.out.strip() == w.ws and "kept"),
    works("working-directory-of-root", "pwd", prints("/"), cwd="/"),
]

# -- arguments, exit codes, texts --------------------------------------------------------------------------------------

CASES += [works("exit-code", "exit 37", exits(37))]
for code in (1, 2, 5, 75, 125, 126, 127, 255):
    CASES.append(works(f"exit-code-{code}", f"exit {code}", exits(code)))
CASES += [
    works("false-is-ordinary", "false", exits(1)),
    works("no-match-is-ordinary", "grep nothing f", exits(1)),
    works("command-not-found-is-ordinary", "no-such-command-at-all", exits(127)),
    works("not-executable-is-ordinary", "./f", exits(126)),
    works("killed-by-signal", "kill -TERM $$", lambda w: w.done.code in (143, -15) and "terminated"),
    works("crashed", 'kill -SEGV $$', lambda w: w.done.code in (139, -11) and "crashed"),
    works("text-like-a-failure-of-bwrap", "echo \"bwrap: Can't mount proc on /newroot/proc: Operation not permitted\" >&2; exit 1", exits(1)),
    works("text-like-a-failure-of-the-launcher", 'echo "landlock-run: cannot restrict itself: Operation not permitted" >&2; exit 125', exits(125)),
    works("text-like-a-status", 'echo "{\\"exit-code\\": 0}"; echo F 1 >&3; echo Frestrict 1 >&4; exit 9', exits(9)),
    works("status-descriptors-cannot-be-written", "for n in 3 4 5 6 7 8 9 10 11 12; do printf 'Fexec 2' >&$n; done 2>/dev/null; exit 3", exits(3)),
    works("many-arguments", ["bash", "-c", 'echo "$#"', "x"] + ["y" * 50] * 12000, prints("12000")),
    works("long-argument", ["bash", "-c", 'echo "${#1}"', "x", "y" * 131000], prints("131000")),
    works("arguments-with-dashes", ["bash", "-c", 'echo "$1 $2"', "x", "--rw", "--"], prints("--rw --")),
]

"""Hosts that lack something: the next runner is used, or nothing runs; never a command without its sandbox."""
import os

from case import both, exits, outside, present, prints, refused, works, writes

CASES = []


def by_chain(w):
    """Without a forced runner: what an ordinary start would choose."""
    argv = w.argv(w.case.run)
    if not w.baseline:
        at = argv.index("--runner")
        del argv[at:at + 2]
    w.done = w.call(argv, cwd=w.ws)


def ran(w):
    return w.done.code != 5 and f"it ran, exit code {w.done.code}"


def shell(text):
    return lambda w: ["unshare", "-rm", "sh", "-c", text + '; exec "$@"', "host"]


NO_NAMESPACES = shell("echo 0 > /proc/sys/user/max_user_namespaces")
MASKED_PROC = shell("mount -t tmpfs none /proc/fs")
NAMESPACES = "needs user namespaces to prepare"
for name, host in (("user-namespaces-forbidden", NO_NAMESPACES), ("masked-proc", MASKED_PROC)):
    CASES += [
        writes(f"{name}-work-goes-on", "echo x > made", present("ws/made"), wrap=host, drive=by_chain, runners=("bwrap",)),
        refused(f"{name}-nothing-gets-out", 'echo PWN > "$OUT/new"; chmod 777 "$OUT/f"', outside, wrap=host, drive=by_chain,
                runners=("bwrap",)),
        refused(f"{name}-forced-runner-runs-nothing", "true", ran, wrap=host, runners=("bwrap",)),
    ]


def without_landlock(w):
    return [w.tools.helper, "without-landlock"]


CASES += [
    refused("no-landlock-forced-runner-runs-nothing", "true", ran, wrap=without_landlock, runners=("landlock",)),
    refused("no-landlock-nothing-gets-out", 'echo PWN > "$OUT/new"; chmod 777 "$OUT/f"', outside, wrap=without_landlock,
            drive=by_chain, runners=("bwrap",)),
    writes("no-landlock-work-goes-on", "echo x > made", present("ws/made"), wrap=without_landlock, drive=by_chain,
           runners=("bwrap",)),
    works("no-landlock-exit-code", "exit 125", exits(125), wrap=without_landlock, drive=by_chain, runners=("bwrap",)),
    works("no-landlock-text-like-a-failure", "echo 'bwrap: no' >&2; exit 1", exits(1), wrap=without_landlock, drive=by_chain,
          runners=("bwrap",)),
    works("no-runner-refuses", "true", lambda w: w.done.code == (0 if w.baseline else 5) and "said so", drive=by_chain,
          wrap=lambda w: NO_NAMESPACES(w) + without_landlock(w), runners=("bwrap",)),
    writes("root-without-capabilities", "echo x > made && chmod 600 made", present("ws/made"), users=("root",),
           drive=by_chain, runners=("bwrap",), wrap=lambda w: ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]),
    works("workspace-of-another-user", "cat f; echo x > made 2>/dev/null; exit 3",
          both(exits(3), lambda w: not os.path.exists(w.ws + "/made") and w.done.out == "MINE\n" and "read"),
          users=("ordinary",),
          setup=lambda w: os.getuid() == 0 and os.chown(w.ws, 0, 0) or os.chmod(w.ws, 0o555)),
    works("little-address-space-left", "echo yes", prints("yes"),
          wrap=lambda w: ["sh", "-c", 'ulimit -v 2000000; exec "$@"', "x"]),
]

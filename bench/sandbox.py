#!/usr/bin/env python3
"""What confining one command costs: everything that the agent starts for it (reaper, launcher, filter, listener), over a bare
`true`, beside the simplest profile of the same runner; all in turns in one run.

  sandbox.py --agent build/release/acp-agent [--rounds N]

Cost is the median less the median of the bare command. The limit decides the exit code.
"""
import argparse
import os
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "golden"))
sys.path.insert(0, HERE)
import agents                                      # noqa: E402
import bench                                       # noqa: E402
import spawn                                       # noqa: E402

LIMIT = 2.5
MARKER = "sleep 0.7"


def confined_true(agent_binary, runner, root, model):
    """The argv of call-init for `true` under this runner, from a call that the agent really made."""
    with open(os.path.join(HERE, "..", "cordis.yml"), encoding="utf-8") as f:
        text = f.read().replace("name: sandbox-local ", f"name: sandbox-local\n  config: {{chain: [{runner}]}}\n ", 1)
    config = os.path.join(root, f"{runner}.yml")
    with open(config, "w", encoding="utf-8") as f:
        f.write(text)
    agent = agents.ours(agent_binary, root, model.port)
    agent["env"]["ACP_AGENT_CONFIG"] = config
    running = bench.Running(agent, root)
    try:
        model.tell([agent["bash"](MARKER), []])
        request = running.start_prompt()
        argv, cwd, env = spawn.find_call_init(running.client.proc.pid, MARKER, time.monotonic() + 20)
        running.client.wait_answer(request, 60)
    finally:
        running.close()
    return spawn.Command(spawn.replaced(argv, ["/bin/bash", "-c", MARKER], ["/bin/true"]), cwd, env)


def plain(argv, cwd, env):
    def once():
        start = time.monotonic()
        pid = os.posix_spawn(argv[0], argv, env)
        if os.waitpid(pid, 0)[1] != 0:
            raise RuntimeError(f"failed: {argv}")
        return time.monotonic() - start
    os.chdir(cwd)
    return once


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", required=True)
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    options.agent = os.path.abspath(options.agent)
    return bench.reported("sandbox", lambda: measure(options))


def measure(options):
    launcher, over = os.path.join(os.path.dirname(options.agent), "landlock-run"), False
    with bench.world() as (root, model):
        workspace = os.path.join(root, "workspace")
        simple = {
            "bwrap": ["/usr/bin/bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--unshare-pid", "--proc", "/proc",
                      "--die-with-parent", "--bind", workspace, workspace, "/bin/true"],
            "landlock": [launcher, "--ro", "/", "--rw", "/dev/null", "--rw", workspace, "--", "/bin/true"],
        }
        print(f"{'':10}{'bare':>8}{'simple':>8}{'ours':>8}{'ratio of cost':>15}   limit {LIMIT:g}")
        for runner, argv in simple.items():
            ours = confined_true(options.agent, runner, root, model)
            runs = {"bare": plain(["/bin/true"], workspace, ours.environment),
                    "simple": plain(argv, workspace, ours.environment), "ours": ours.time_once}
            times = {name: [] for name in runs}
            for i in range(options.rounds + 3):
                for name, once in runs.items():
                    seconds = once()
                    if i >= 3:
                        times[name].append(seconds * 1000)
            bare, simple_ms, ours_ms = (statistics.median(times[n]) for n in ("bare", "simple", "ours"))
            ratio = (ours_ms - bare) / (simple_ms - bare)
            over |= ratio > LIMIT
            print(f"{runner:10}{bare:8.2f}{simple_ms:8.2f}{ours_ms:8.2f}{ratio:14.2f}x{'   OVER' if ratio > LIMIT else ''}")
        return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Start-up, memory and the agent's own share of a step, ours beside another real agent, all in one run.

  bench.py --agent build/release/acp-agent [--no-peer] [--steps N] [--starts N]

Every figure is taken against a floor of the same run: `cat` for the start, the very same wrapped argv for a command. Medians;
limits are printed beside them and decide the exit code.
"""
import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "golden"))
sys.path.insert(0, HERE)
import agents                              # noqa: E402
import spawn                               # noqa: E402
from client import Client, ClientError     # noqa: E402

LIMITS = {"start over cat, ms": 8.0, "idle PSS, MB": 12.0, "own share of a bash step, ms": 2.0, "own share of a read step, ms": 1.0}
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
         "params": {"protocolVersion": 1, "clientCapabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}}


class Model:
    """The model server in its own process."""

    def __init__(self):
        self.proc = subprocess.Popen([sys.executable, os.path.join(HERE, "model_server.py")], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True)
        self.port = int(self.proc.stdout.readline())

    def tell(self, command):
        self.proc.stdin.write(json.dumps(command) + "\n")
        self.proc.stdin.flush()
        return self.proc.stdout.readline()

    def stamps(self):
        return [s for s in json.loads(self.tell(None)) if s["main"]]

    def close(self):
        self.proc.stdin.close()
        self.proc.wait()


@contextlib.contextmanager
def world():
    """A folder with workspace, home and state in it, and a model server."""
    root = tempfile.mkdtemp(prefix="acp-bench-", dir="/var/tmp")
    model = Model()
    try:
        for folder in ("workspace", "home", "state"):
            os.mkdir(os.path.join(root, folder))
        yield root, model
    finally:
        model.close()
        shutil.rmtree(root, ignore_errors=True)


def reported(name, run):
    """The exit code of run(); 2, and why on stderr, when it could not measure."""
    try:
        return run()
    except (ClientError, RuntimeError, OSError, subprocess.SubprocessError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2


def environment(root, extra):
    base = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": os.path.join(root, "home"), "LANG": "C.UTF-8", "TERM": "dumb"}
    return {**base, **extra}


def first_line_ms(argv, env, cwd):
    """Start of the process to the first line it answers."""
    start = time.monotonic()
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, cwd=cwd)
    child.stdin.write(json.dumps(HELLO).encode() + b"\n")
    child.stdin.flush()
    line = child.stdout.readline()
    elapsed = (time.monotonic() - start) * 1000
    child.stdin.close()
    try:
        child.wait(5)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    if not line:
        raise RuntimeError(f"{argv[0]} answered nothing")
    return elapsed


def starts(agent, root, count):
    """Median of the agent, and of cat, taken in turns."""
    env = environment(root, agent["env"])
    mine, cats = [], []
    for i in range(count + 2):                   # the first two warm the page cache
        cat, own = first_line_ms(["cat"], env, root), first_line_ms(agent["argv"], env, root)
        if i >= 2:
            cats.append(cat)
            mine.append(own)
    return statistics.median(mine), statistics.median(cats)


def tree_pss(pid):
    """PSS of a process and its descendants in MB; None when the kernel does not let us read it."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="latin1") as f:
                    children.setdefault(int(f.read().rsplit(")", 1)[1].split()[1]), []).append(int(entry))
            except (OSError, ValueError):
                pass
    todo, total = [pid], 0
    while todo:
        one = todo.pop()
        todo += children.get(one, [])
        try:
            with open(f"/proc/{one}/smaps_rollup", encoding="ascii") as f:
                total += int(re.search(r"^Pss:\s+(\d+)", f.read(), re.M).group(1))
        except (OSError, AttributeError):
            return None
    return total / 1024


def told_pss(client, stderr_path):
    """Our agent refuses to be read from outside; on SIGUSR2 it says its own PSS."""
    os.kill(client.proc.pid, signal.SIGUSR2)
    end = time.monotonic() + 5
    while time.monotonic() < end:
        with open(stderr_path, encoding="utf-8", errors="replace") as f:
            found = re.findall(r"pss (\d+) KiB", f.read())
        if found:
            return int(found[-1]) / 1024
        time.sleep(0.05)
    return None


class Running:
    def __init__(self, agent, root):
        self.agent = agent
        self.stderr = os.path.join(root, agent["name"] + ".stderr")
        open(self.stderr, "w").close()
        self.client = Client(agent["argv"], environment(root, agent["env"]), root, self.stderr)
        self.call("initialize", HELLO["params"])
        self.session = self.call("session/new", {"cwd": os.path.join(root, "workspace"), "mcpServers": []})["sessionId"]

    def call(self, method, params, timeout=120):
        answer, _ = self.client.wait_answer(self.client.request(method, params), timeout)
        if "error" in answer:
            raise ClientError(f"{self.agent['name']}: {method}: {answer['error']}")
        return answer["result"]

    def start_prompt(self):
        return self.client.request("session/prompt", {"sessionId": self.session, "prompt": [{"type": "text", "text": "Go on."}]})

    def prompt(self):
        return self.client.wait_answer(self.start_prompt(), 300)

    def close(self):
        self.client.kill()


def gaps(stamps):
    """ms from the last byte of an answer to the last byte of the next request."""
    return [(b["arrived"] - a["sent"]) / 1e6 for a, b in zip(stamps, stamps[1:]) if "sent" in a]


def step_gaps(running, model, calls):
    model.tell(calls + [[]])
    answer, _ = running.prompt()
    stamps = model.stamps()
    errors = [s["error"] for s in stamps if "error" in s]
    if errors or "error" in answer:
        raise ClientError(f"{running.agent['name']}: {errors[:1] or answer['error']}")
    return gaps(stamps)


def measure(agent, root, model, options):
    out = {}
    own, cat = starts(agent, root, options.starts)
    out["start to initialize, ms"], out["cat in the same run, ms"], out["start over cat, ms"] = own, cat, own - cat
    running = Running(agent, root)
    try:
        time.sleep(2)
        pss = told_pss(running.client, running.stderr) if agent["name"] == "acp-agent" else tree_pss(running.client.proc.pid)
        out["idle PSS, MB"] = pss
        files = [os.path.join(root, "workspace", f"f{i}.txt") for i in range(options.steps)]
        step_gaps(running, model, [agent["bash"]("true")] * 3)                     # warms up
        floor = None
        if agent["name"] == "acp-agent":
            floor = wrapped_floor(running, model, options.steps)
        bash = statistics.median(step_gaps(running, model, [agent["bash"](f"true {i}") for i in range(options.steps)]))
        read = statistics.median(step_gaps(running, model, [agent["read"](path) for path in files]))
        out["bash step, ms"], out["read step, ms"] = bash, read
        if floor is not None:
            out["the wrapped argv alone, ms"] = floor
            out["own share of a bash step, ms"], out["own share of a read step, ms"] = bash - floor, read
    finally:
        running.close()
    return out


def wrapped_floor(running, model, count):
    marker = "sleep 0.7"
    model.tell([running.agent["bash"](marker), []])
    request = running.start_prompt()
    argv, cwd, env = spawn.find_call_init(running.client.proc.pid, marker, time.monotonic() + 10)
    running.client.wait_answer(request, 60)
    command = spawn.Command(spawn.replaced(argv, [marker], ["true"]), cwd, env)
    times = [command.time_once() * 1000 for _ in range(count + 3)][3:]
    return statistics.median(times)


def table(rows):
    names = [name for name, _ in rows]
    keys = list(dict.fromkeys(k for _, values in rows for k in values))
    lines = [["", *names, *(["ratio"] if len(rows) == 2 else []), "limit"]]
    over = []
    for key in keys:
        values = [v.get(key) for _, v in rows]
        line = [key] + [f"{v:.2f}" if v is not None else "-" for v in values]
        if len(rows) == 2:
            line.append(f"{values[1] / values[0]:.1f}x" if None not in values and values[0] > 0 else "-")
        limit = LIMITS.get(key)
        line.append(f"<= {limit:g}" if limit else "")
        if limit and (values[0] is None or values[0] > limit):
            line[-1] += "  OVER"
            over.append(key)
        lines.append(line)
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        print("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths))).rstrip())
    return over


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", required=True)
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--starts", type=int, default=30)
    options = parser.parse_args()
    return reported("bench", lambda: compare(options))


def compare(options):
    with world() as (root, model):
        for i in range(options.steps):
            with open(os.path.join(root, "workspace", f"f{i}.txt"), "w", encoding="ascii") as f:
                f.write("".join(f"file {i} line {n}\n" for n in range(10)))
        rows = []
        for agent in [agents.ours(options.agent, root, model.port)] + ([] if options.no_peer else [agents.peer(root, model.port)]):
            print(f"measuring {agent['name']} ...", file=sys.stderr, flush=True)
            rows.append((agent["name"], measure(agent, root, model, options)))
        over = table(rows)
        print("\nMedians. acp-agent runs every command confined (workspace-write); the other runs unconfined. A read step of the "
              "other is a\nshell command, as it has no read tool. `ratio` is the other divided by ours.")
        return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())

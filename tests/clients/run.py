#!/usr/bin/env python3
"""Real clients against the built agent: a script on @agentclientprotocol/sdk, and acpx. Recorded model, real sandbox.

  run.py --agent build/release/acp-agent
"""
import argparse
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDINGS = ("granted", "rejected", "cancelled")


def expect(condition, text, detail=""):
    if not condition:
        raise AssertionError(f"{text}\n{detail[-3000:]}")


class World:
    """Folders of one conversation, and the environment its agent runs in."""

    def __init__(self, agent, names):
        self.root = tempfile.mkdtemp(prefix="acp-clients-", dir="/var/tmp")
        for folder in ("workspace", "outside", "home", "state"):
            os.mkdir(os.path.join(self.root, folder))
        with open(self.path("workspace", "hello.txt"), "w", encoding="utf-8") as f:
            f.write("Hello, world.\n")
        with open(self.path("model.txt"), "w", encoding="utf-8") as out:
            for name in names:
                with open(os.path.join(HERE, name + ".txt"), encoding="utf-8") as f:
                    out.write(f.read().replace("{tmp}", self.root))
        self.agent = agent
        self.environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": self.path("home"), "LANG": "C.UTF-8", "TERM": "dumb",
            "XDG_STATE_HOME": self.path("state"), "ACP_AGENT_ROUTE": "recorded", "ACP_AGENT_RECORDING": self.path("model.txt"),
        }
        self.environment.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})

    def path(self, *parts):
        return os.path.join(self.root, *parts)

    def exists(self, *parts):
        return os.path.exists(self.path(*parts))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root, ignore_errors=True)


def run_sdk(node, packages, agent):
    with World(agent, RECORDINGS) as world:
        done = subprocess.run([node, os.path.join(HERE, "sdk_client.mjs"), packages, world.path("workspace"),
                               world.path("outside")] + agent + ["acp"], env=world.environment, timeout=180)
        expect(done.returncode == 0, f"the SDK client failed with exit code {done.returncode}")


class Acpx:
    def __init__(self, node, packages, world):
        self.argv = [node, os.path.join(packages, "node_modules/acpx/dist/cli.js")]
        self.world = world
        # acpx splits --agent at white space and runs it; a wrapper keeps paths and options out of that.
        wrapper = world.path("agent.sh")
        with open(wrapper, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\nexec " + " ".join(shlex.quote(a) for a in world.agent + ["acp"]) + "\n")
        os.chmod(wrapper, 0o755)
        self.options = ["--agent", wrapper, "--cwd", world.path("workspace"), "--timeout", "120"]

    def start(self, *arguments):
        return subprocess.Popen(self.argv + self.options + list(arguments), env=self.world.environment,
                                cwd=self.world.path("workspace"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, errors="replace")

    def run(self, *arguments):
        child = self.start(*arguments)
        out, _ = child.communicate(timeout=180)
        return child.returncode, out


def events(text):
    out = []
    for line in text.splitlines():
        try:
            out.append(json.loads(line))
        except ValueError:
            pass
    return [e for e in out if isinstance(e, dict)]


def run_acpx(node, packages, agent):
    with World(agent, ["granted"]) as world:
        code, out = Acpx(node, packages, world).run("--approve-all", "--format", "json", "exec", "Make the change and report it.")
        expect(code == 0, f"acpx exec ended with {code}", out)
        updates = [e["params"]["update"] for e in events(out) if e.get("method") == "session/update"]
        chunks = [u for u in updates if u["sessionUpdate"] == "agent_message_chunk"]
        expect(len(chunks) > 1, "acpx shows streamed text", out)
        expect("from-the-command" in out, "acpx shows the command's output", out)
        diffs = [c for u in updates for c in u.get("content") or [] if isinstance(c, dict) and c.get("type") == "diff"]
        expect(any("Hello, reader" in d["newText"] and "Hello, world" in d["oldText"] for d in diffs), "acpx shows the diff", out)
        expect(any(e.get("method") == "session/request_permission" for e in events(out)), "acpx was asked", out)
        expect(world.exists("outside", "granted.txt"), "the allowed write was done", out)
        print("ok   acpx: streams, runs a command, edits with a diff, asks and is allowed", flush=True)
    with World(agent, ["rejected"]) as world:
        code, out = Acpx(node, packages, world).run("--deny-all", "--format", "json", "exec", "Report it again.")
        expect(any(e.get("method") == "session/request_permission" for e in events(out)), "acpx was asked", out)
        expect(not world.exists("outside", "rejected.txt"), "the rejected write was not done", out)
        expect("You did not want it." in out.replace('"', "") or "not want" in out, "the turn went on after the refusal", out)
        print(f"ok   acpx: asks and is refused (its exit code: {code})", flush=True)
    with World(agent, ["cancelled"]) as world:
        acpx = Acpx(node, packages, world)
        code, out = acpx.run("sessions", "new")
        expect(code == 0, f"acpx sessions new ended with {code}", out)
        child = acpx.start("--format", "json", "prompt", "Talk at length.")
        begun, end = "", time.monotonic() + 60
        while "agent_message_chunk" not in begun and time.monotonic() < end:
            line = child.stdout.readline()
            if not line:
                break
            begun += line
        expect("agent_message_chunk" in begun, "the answer began", begun)
        code, out = acpx.run("cancel")
        expect(code == 0, f"acpx cancel ended with {code}", out)
        rest, _ = child.communicate(timeout=60)
        expect("cancelled" in begun + rest, "the prompt was answered as cancelled", begun + rest)
        acpx.run("sessions", "close")
        print("ok   acpx: cancels", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", required=True, type=shlex.split)
    options = parser.parse_args()
    agent = options.agent[:-1] + [os.path.abspath(options.agent[-1])]
    packages = subprocess.run([os.path.join(HERE, "install.sh")], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    node = os.path.join(packages, "node_modules", f"node-linux-{machine}", "bin", "node")
    try:
        run_sdk(node, packages, agent)
        run_acpx(node, packages, agent)
    except (AssertionError, subprocess.SubprocessError, OSError) as error:
        print(f"FAIL {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""One golden case on one runner: lays out folders, carries out the steps, collects what is compared, and checks what
must hold for every case (valid output, request rules, requests and updates regenerated from the log by a fresh process).
"""
import collections
import glob
import json
import os
import shutil
import stat
import subprocess
import tempfile

import compose
import fold
import model_requests
import normalise
from client import Client, ClientError
from steps import Steps, StepFault
from validate import validate

FOLDERS = ("workspace", "outside", "home", "state", "elsewhere")
PASSED_ON = ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS")


class Result:
    def __init__(self):
        self.goldens = {}
        self.faults = []
        self.stderr = ""


class Case:
    def __init__(self, folder, source):
        self.folder, self.source, self.name = folder, source, os.path.basename(folder)
        with open(os.path.join(folder, "case.json"), encoding="utf-8") as f:
            self.spec = json.load(f)
        known = {"about", "runners", "env", "composition", "files", "steps", "process_cwd", "concurrent", "crashes"}
        if set(self.spec) - known:
            raise ValueError(f"{folder}/case.json: unknown members {sorted(set(self.spec) - known)}")

    def runners(self):
        return self.spec.get("runners") or [None]

    def run(self, agent, runner, schema, keep=False, slow=1):
        root = tempfile.mkdtemp(prefix="acp-golden-", dir="/var/tmp")
        result = Result()
        try:
            Run(self, agent, runner, schema, root, result, slow).run()
        except (StepFault, ClientError, ValueError, OSError, subprocess.SubprocessError) as error:
            result.faults.insert(0, f"{type(error).__name__}: {error}")
        finally:
            for path in sorted(glob.glob(root + "/*stderr*")):
                with open(path, encoding="utf-8", errors="replace") as f:
                    result.stderr += f.read()
            if keep:
                result.stderr += f"\nkept: {root}\n"
            else:
                subprocess.run(["chmod", "-R", "u+rwx", root], stderr=subprocess.DEVNULL)
                shutil.rmtree(root, ignore_errors=True)
        return result


class Run:
    def __init__(self, case, agent, runner, schema, root, result, slow):
        self.case, self.agent, self.runner, self.schema = case, agent, runner, schema
        self.root, self.result, self.spec = root, result, case.spec
        self.names = normalise.Names(root, runner)
        self.steps = Steps(root, self.start, self.run_agent, slow)
        self.count = 0

    def path(self, *parts):
        return os.path.join(self.root, *parts)

    # Set-up.

    def lay_out(self):
        for folder in FOLDERS:
            os.mkdir(self.path(folder))
        for name, content in self.spec.get("files", {}).items():
            path = self.path(name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            text = self.steps.fill(content["text"] if isinstance(content, dict) else content)
            with open(path, "w", encoding="utf-8", newline="") as f:
                f.write(text)
            if isinstance(content, dict):
                os.chmod(path, int(content["mode"], 8))
        model = os.path.join(self.case.folder, "model.txt")
        with open(model, encoding="utf-8", newline="") as f:
            text = self.steps.fill(f.read())
        with open(self.path("model.txt"), "w", encoding="utf-8", newline="") as f:
            f.write(text)
        self.environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": self.path("home"), "LANG": "C.UTF-8", "TERM": "dumb",
            "XDG_STATE_HOME": self.path("state"), "ACP_AGENT_ROUTE": "recorded",
            "ACP_AGENT_RECORDING": self.path("model.txt"), "ACP_AGENT_REQUESTS": self.path("requests.jsonl"),
        }
        self.environment.update({k: os.environ[k] for k in PASSED_ON if k in os.environ})
        self.environment.update(self.steps.fill(self.spec.get("env", {})))
        edits = self.steps.fill(self.spec.get("composition") or {})
        base = edits.pop("file", "cordis.yml")
        if edits or self.runner or base != "cordis.yml":
            with open(os.path.join(self.case.source, base), encoding="utf-8") as f:
                text = compose.derive(f.read(), edits, [self.runner] if self.runner else None)
            with open(self.path("cordis.yml"), "w", encoding="utf-8") as f:
                f.write(text)
            self.environment["ACP_AGENT_CONFIG"] = self.path("cordis.yml")

    def start(self):
        self.count += 1
        return Client(self.agent + ["acp"], self.environment, self.path(self.spec.get("process_cwd", "elsewhere")),
                      self.path(f"{self.count}.stderr"))

    def run_agent(self, arguments, cwd, environment=None):
        done = subprocess.run(self.agent + arguments, env=environment or self.environment, cwd=cwd,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=120)
        with open(self.path("commands.stderr"), "a", encoding="utf-8") as f:
            f.write(done.stderr)
        return done

    # The run.

    def run(self):
        self.lay_out()
        try:
            for step in self.spec["steps"]:
                self.steps.run(step)
            self.steps.finish()
        finally:
            for client in self.steps.clients:
                if client.proc.poll() is None:
                    client.kill()
            self.collect()
        self.check_replay()

    def logs(self):
        """Every session log of the case as (id, lines), oldest first; of one millisecond, as the clients were told of them."""
        told = [message["result"]["sessionId"] for client in self.steps.clients for _, message, _ in client.traffic
                if isinstance(message, dict) and isinstance(message.get("result"), dict) and "sessionId" in message["result"]]
        found = []
        for path in glob.glob(self.path("state", "**", "session.jsonl"), recursive=True):
            with open(path, encoding="utf-8") as f:
                lines = [json.loads(line) for line in f if line.endswith("\n")]
            session_id = os.path.basename(os.path.dirname(path))
            rank = told.index(session_id) if session_id in told else len(told)
            found.append((lines[0].get("time", ""), rank, session_id, lines))
        return [(session_id, lines) for _, _, session_id, lines in sorted(found, key=lambda item: item[:3])]

    def collect(self):
        faults, goldens = self.result.faults, self.result.goldens
        out = []
        for client in self.steps.clients:
            faults += validate(self.schema, client.traffic)
            lines = fold.printed(client.traffic)
            out += fold.joined(fold.by_session(lines, client.traffic) if self.spec.get("concurrent") else lines)
        if self.steps.clients:
            goldens["stdout.jsonl"] = self.names.lines(out)
        if self.steps.shell_output:
            goldens["commands.txt"] = self.names.text("".join(self.steps.shell_output))
        logs = self.logs()
        goldens["log.jsonl"] = "".join(self.names.lines(lines) for _, lines in logs)
        goldens["requests.jsonl"] = self.names.lines(self.requests([session_id for session_id, _ in logs]))
        goldens["files.txt"] = self.names.text(self.files())

    def requests(self, session_ids):
        """The requests sent, each session's in its order, after comparing them with what the log regenerates."""
        kept = []
        if os.path.exists(self.path("requests.jsonl")):
            with open(self.path("requests.jsonl"), encoding="utf-8") as f:
                kept = f.read().splitlines()
        # A fresh process, which must not add to the requests it is compared with.
        environment = dict(self.environment, ACP_AGENT_REQUESTS=self.path("regenerating.jsonl"))
        out, all_made = [], []
        for session_id in session_ids:
            done = self.run_agent(["sessions", "requests", session_id], self.path("elsewhere"), environment)
            if done.returncode != 0:
                self.result.faults.append(f"sessions requests {session_id} failed: {done.stderr[-500:]}")
                continue
            made = done.stdout.splitlines()
            all_made += made
            self.result.faults += model_requests.check(made)
            out += model_requests.short(made)
        if collections.Counter(all_made) != collections.Counter(kept) or (len(session_ids) == 1 and all_made != kept):
            self.result.faults.append(
                f"the log regenerates other requests than were sent: {len(kept)} sent, {len(all_made)} regenerated"
                + next((f"; first difference in request {i}:\n  sent {a[-400:]}\n  made {b[-400:]}"
                        for i, (a, b) in enumerate(zip(kept, all_made)) if a != b), ""))
        return out

    def files(self):
        """Type, mode and content of everything below workspace and outside."""
        out = []
        for top in ("workspace", "outside"):
            for folder, folders, files in os.walk(self.path(top)):
                folders.sort()
                for name in sorted(folders + files):
                    path = os.path.join(folder, name)
                    info = os.lstat(path)
                    shown = f"{os.path.relpath(path, self.root)} {stat.filemode(info.st_mode)}"
                    if stat.S_ISLNK(info.st_mode):
                        out.append(f"{shown} -> {os.readlink(path)}\n")
                    elif stat.S_ISREG(info.st_mode):
                        with open(path, encoding="utf-8", errors="backslashreplace", newline="") as f:
                            out.append(f"{shown}\n" + "".join(f"  |{line}\n" for line in f.read().split("\n")))
                    else:
                        out.append(f"{shown}\n")
        return "".join(sorted(out, key=lambda text: text.split(" ")[0]))

    # After the case.

    def check_replay(self):
        """A fresh process replays each session as the client saw it live."""
        if self.spec.get("crashes") or not self.steps.clients:
            return
        for name, session_id in self.steps.sessions.items():
            live = [c for c in self.steps.clients if any(
                d == "in" and isinstance(m, dict) and m.get("params", {}).get("sessionId") == session_id
                for d, m, _ in c.traffic)]
            client = self.start()
            try:
                request = client.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
                client.wait_answer(request, 60)
                request = client.request("session/load", {"sessionId": session_id, "mcpServers": [],
                                                          "cwd": self.steps.folders[name]})
                answer, _ = client.wait_answer(request, 60)
                client.close(15)
            finally:
                if client.proc.poll() is None:
                    client.kill()
            if "error" in answer:
                self.result.faults.append(f"session {name} does not load: {answer['error']}")
                continue
            self.result.faults += validate(self.schema, client.traffic)
            self.compare_replay(name, session_id, live[-1].traffic if live else [], client.traffic)

    def compare_replay(self, name, session_id, live, replay):
        def split(traffic):
            items = fold.conversation(traffic, session_id)
            return ([i for i in items if i["kind"] == "user_message_chunk"] if traffic else [],
                    [i for i in items if i.get("kind") != "user_message_chunk"])
        _, shown = split(live)
        typed, replayed = split(replay)
        if shown != replayed:
            for a, b in zip(shown + [None] * len(replayed), replayed + [None] * len(shown)):
                if a != b:
                    self.result.faults.append(f"session {name}: replay differs from what was shown:\n"
                                              f"  live   {json.dumps(a)}\n  replay {json.dumps(b)}")
                    break
        sent = [p for c in self.steps.clients for p in fold.prompts(c.traffic, session_id)]
        text = "".join(b.get("text", "") for item in typed for b in item["content"])
        want = "".join(b.get("text", "") for prompt in sent for b in prompt)
        if text != want:
            self.result.faults.append(f"session {name}: replayed user messages differ:\n  typed  {want!r}\n  replay {text!r}")

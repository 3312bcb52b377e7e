"""What a case can do, one function a verb. A step is an object with exactly one verb and its options (see README.md)."""
import json
import os
import re
import subprocess
import time

WAIT = 60.0          # only a hang reaches this; sanitizer builds are slow


class StepFault(Exception):
    pass


def contains(value, part):
    """`part` is a subset of `value`: members of objects, elements of lists in order, "~text" = contains text."""
    if isinstance(part, dict):
        return isinstance(value, dict) and all(k in value and contains(value[k], v) for k, v in part.items())
    if isinstance(part, list):
        return isinstance(value, list) and len(value) >= len(part) and all(contains(v, p) for v, p in zip(value, part))
    if isinstance(part, str) and part.startswith("~"):
        return isinstance(value, str) and part[1:] in value
    return value == part


class Steps:
    """Carries out the steps of one case against agent processes started through `start`."""

    def __init__(self, root, start, run_agent, slow):
        self.root, self.start, self.run_agent, self.slow = root, start, run_agent, slow
        self.client = None
        self.clients = []            # every process of the case, for validation
        self.sessions = {}           # name -> id
        self.folders = {}            # name -> its cwd
        self.prompts = {}            # name -> pending request id
        self.marks = {}
        self.shell_output = []       # of run steps
        self.asked = None            # the permission that is open

    # Helpers.

    def fill(self, value):
        """{tmp} and {session:NAME} in every string."""
        if isinstance(value, str):
            value = value.replace("{tmp}", self.root).replace("{unique}", os.path.basename(self.root))
            return re.sub(r"\{session:(\w+)\}", lambda m: self.sessions[m.group(1)], value)
        if isinstance(value, list):
            return [self.fill(v) for v in value]
        if isinstance(value, dict):
            return {k: self.fill(v) for k, v in value.items()}
        return value

    def ensure(self, capabilities=None):
        if self.client is None:
            self.client = self.start()
            self.clients.append(self.client)
            self.call("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities or {},
                                     "clientInfo": {"name": "golden", "version": "1"}})

    def call(self, method, params, error=None):
        request_id = self.client.request(method, params)
        answer, _ = self.client.wait_answer(request_id, WAIT)
        if error is None and "error" in answer:
            raise StepFault(f"{method} was answered with {answer['error']}")
        if error is not None and not contains(answer.get("error"), error):
            raise StepFault(f"{method}: expected the error {error}, got {answer}")
        return answer.get("result")

    def session(self, step):
        name = step.get("session")
        if name is None:
            name = next(iter(self.sessions))
        return name, self.sessions[name]

    def run(self, step):
        step = self.fill(step)
        verbs = [v for v in step if hasattr(self, f"do_{v}")]
        if len(verbs) != 1:
            raise StepFault(f"a step needs exactly one verb: {step}")
        if verbs[0] not in ("raw_start", "run", "wait_file", "crash", "restart", "initialize"):
            self.ensure()
        getattr(self, f"do_{verbs[0]}")(step[verbs[0]], step)

    # Verbs: the connection.

    def do_initialize(self, capabilities, step):
        self.ensure(capabilities)

    def do_raw_start(self, _, step):
        """Starts the agent without initialize, for what a bad client sends first."""
        self.client = self.start()
        self.clients.append(self.client)

    def do_raw(self, line, step):
        self.client.send_raw(line)
        if "code" in step:
            code = step["code"]
            self.client.wait_message(lambda m: m.get("id") is None and m.get("error", {}).get("code") == code,
                                     0, WAIT)

    def do_request(self, method, step):
        result = self.call(method, step.get("params", {}), step.get("error"))
        if "result" in step and not contains(result, step["result"]):
            raise StepFault(f"{method}: expected {step['result']}, got {result}")

    def do_notify(self, method, step):
        self.client.notify(method, step.get("params", {}))

    def do_restart(self, _, step):
        """Ends the process with its standard input; the next step starts a fresh one."""
        code, _ = self.client.close()
        if code != 0:
            raise StepFault(f"the agent exited with {code} at end of input")
        self.client = None

    def do_crash(self, _, step):
        self.client.kill()
        self.client = None
        self.prompts.clear()

    # Verbs: sessions and turns.

    def do_new(self, name, step):
        folder = step.get("cwd", os.path.join(self.root, "workspace"))
        result = self.call("session/new", {"cwd": folder, "mcpServers": []}, step.get("error"))
        if result is not None:
            self.sessions[name], self.folders[name] = result["sessionId"], folder

    def do_load(self, name, step):
        params = {"sessionId": self.sessions[name], "cwd": step.get("cwd", self.folders[name]), "mcpServers": []}
        self.call("session/load", params, step.get("error"))

    def do_set_mode(self, mode, step):
        self.call("session/set_mode", {"sessionId": self.session(step)[1], "modeId": mode}, step.get("error"))

    def do_prompt(self, text, step):
        name, session_id = self.session(step)
        blocks = text if isinstance(text, list) else [{"type": "text", "text": text}]
        self.marks[name] = self.client.mark()
        self.prompts[name] = self.client.request("session/prompt", {"sessionId": session_id, "prompt": blocks})
        if not step.get("async"):
            self.do_answer(name, step)

    def do_answer(self, name, step):
        """Waits for the answer of a prompt: its stop reason, or an error."""
        answer, waited = self.client.wait_answer(self.prompts.pop(name), WAIT)
        want = step.get("stop", "end_turn")
        got = answer.get("result", {}).get("stopReason") if "result" in answer else answer["error"]
        if not contains(got, step["error"] if "error" in step else want):
            raise StepFault(f"prompt: expected {step.get('error', want)}, got {answer}")
        if "within_ms" in step:
            # On a machine with more to do than it has processors everything takes its share longer.
            limit = step["within_ms"] * self.slow * max(1, os.getloadavg()[0] / os.cpu_count())
            if waited * 1000 > limit:
                raise StepFault(f"the answer took {waited * 1000:.0f} ms, allowed are {limit:.0f}")

    def do_cancel(self, name, step):
        self.client.notify("session/cancel", {"sessionId": self.sessions[name]})

    def do_cancel_request(self, name, step):
        self.client.notify("$/cancel_request", {"requestId": self.prompts[name]})

    def do_wait_update(self, part, step):
        """Until an update of the session that contains `part` has come since its last prompt began."""
        name, session_id = self.session(step)
        self.client.wait_message(
            lambda m: m.get("method") == "session/update" and m["params"]["sessionId"] == session_id
            and contains(m["params"]["update"], part), self.marks.get(name, 0), WAIT)

    def do_wait_file(self, path, step):
        """Until the file is there: the command that makes it runs."""
        end = time.monotonic() + WAIT
        while not os.path.exists(path):
            if time.monotonic() > end:
                raise StepFault(f"{path} did not appear")
            time.sleep(0.02)

    # Verbs: permissions.

    def do_asked(self, part, step):
        """Waits for a permission request that contains `part`; a later `permit` answers it."""
        self.asked = self.client.wait_asked(WAIT)
        if self.asked["method"] != "session/request_permission" or not contains(self.asked["params"], part):
            raise StepFault(f"asked something else than {part}: {self.asked}")

    def do_permit(self, answer, step):
        """allow_once, reject_once ... pick the option of that kind; cancelled; error; option:ID selects any id."""
        if self.asked is None:
            self.do_asked({}, step)
        asked, self.asked = self.asked, None
        if answer == "error":
            self.client.reply(asked["id"], error={"code": -32603, "message": "the client cannot ask"})
        elif answer == "request_cancelled":
            self.client.reply(asked["id"], error={"code": -32800, "message": "Request cancelled"})
        elif answer == "cancelled":
            self.client.reply(asked["id"], {"outcome": {"outcome": "cancelled"}})
        else:
            if answer.startswith("option:"):
                option = answer[len("option:"):]
            else:
                option = [o["optionId"] for o in asked["params"]["options"] if o["kind"] == answer][0]
            self.client.reply(asked["id"], {"outcome": {"outcome": "selected", "optionId": option}})

    # Verbs: the command line, and files.

    def do_run(self, arguments, step):
        done = self.run_agent(arguments, step.get("cwd", os.path.join(self.root, "workspace")))
        self.shell_output.append(f"$ acp-agent {' '.join(json.dumps(a) if ' ' in a else a for a in arguments)}\n"
                                 f"{done.stdout}[exit {done.returncode}]\n")
        if done.returncode != step.get("exit", 0):
            raise StepFault(f"run: expected exit code {step.get('exit', 0)}, got {done.returncode}\n{done.stderr[-2000:]}")
        for text in step.get("stderr", []):
            if text not in done.stderr:
                raise StepFault(f"run: {text!r} is not in stderr:\n{done.stderr[-2000:]}")

    def do_write_file(self, path, step):
        """The outside world changes a file."""
        with open(path, "w", encoding="utf-8", newline="") as f:
            f.write(step["content"])

    def do_shell(self, command, step):
        """The outside world does something."""
        subprocess.run(["bash", "-ec", command], check=True, cwd=self.root)

    def finish(self):
        """Nothing may be left open: no prompt, no unanswered question, no process that does not end."""
        if self.client is not None:
            if self.prompts:
                raise StepFault(f"prompts were never awaited: {sorted(self.prompts)}")
            if not self.client.asked.empty():
                raise StepFault(f"the agent asked something no step answered: {self.client.asked.get()}")
            code, _ = self.client.close(15)
            if code != 0:
                raise StepFault(f"the agent exited with {code} at end of input")
            self.client = None

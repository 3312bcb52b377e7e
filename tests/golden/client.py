"""An ACP client over a child's stdio: sends what a case says, keeps every line with its direction, in order.

It answers nothing by itself: a request of the agent waits in `asked` until a step answers it. Used by the golden runner,
the demo and the live tests.
"""
import json
import os
import queue
import signal
import subprocess
import threading
import time


class ClientError(Exception):
    pass


class Client:
    def __init__(self, argv, env, cwd, stderr_path):
        self.stderr = open(stderr_path, "ab")
        self.proc = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr, env=env,
                                     cwd=cwd, start_new_session=True)
        self.traffic = []            # ("out" = we wrote, "in" = the agent wrote, message, raw bytes)
        self.cond = threading.Condition()
        self.next_id = 1
        self.answers = {}
        self.asked = queue.Queue()   # requests of the agent, in order
        self.ended = False
        self.last_in = time.monotonic()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for raw in self.proc.stdout:
            try:
                message = json.loads(raw.decode("utf-8"))
            except ValueError:
                message = None       # kept: the validator reports it with its bytes
            with self.cond:
                self.last_in = time.monotonic()
                self.traffic.append(("in", message, raw))
                if isinstance(message, dict):
                    if "method" in message and "id" in message:
                        self.asked.put(message)
                    elif "method" not in message:
                        self.answers[json.dumps(message.get("id"))] = message
                self.cond.notify_all()
        with self.cond:
            self.ended = True
            self.cond.notify_all()

    def send(self, message):
        raw = json.dumps(message, ensure_ascii=False).encode() + b"\n"
        with self.cond:
            self.traffic.append(("out", message, raw))
        self._write(raw)

    def send_raw(self, line):
        raw = line.encode() + b"\n"
        with self.cond:
            self.traffic.append(("out", None, raw))
        self._write(raw)

    def _write(self, raw):
        try:
            self.proc.stdin.write(raw)
            self.proc.stdin.flush()
        except OSError as error:
            raise ClientError(f"the agent's stdin is closed ({error})")

    def request(self, method, params, request_id=None):
        if request_id is None:
            request_id, self.next_id = self.next_id, self.next_id + 1
        self.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        return request_id

    def notify(self, method, params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def reply(self, request_id, result=None, error=None):
        message = {"jsonrpc": "2.0", "id": request_id}
        message.update({"error": error} if error is not None else {"result": result})
        self.send(message)

    def wait_answer(self, request_id, timeout):
        """(the answer, seconds waited)"""
        key, start = json.dumps(request_id), time.monotonic()
        with self.cond:
            if not self.cond.wait_for(lambda: key in self.answers or self.ended, timeout):
                raise ClientError(f"no answer to request {key} within {timeout} s")
            if key not in self.answers:
                raise ClientError(f"the agent ended (exit code {self.proc.poll()}) without answering request {key}")
            return self.answers[key], time.monotonic() - start

    def wait_asked(self, timeout):
        try:
            return self.asked.get(timeout=timeout)
        except queue.Empty:
            raise ClientError(f"the agent asked nothing within {timeout} s")

    def wait_message(self, predicate, since, timeout):
        """Index after the first line at or after `since` that the agent wrote and `predicate` accepts."""
        found = []

        def look():
            for i in range(since, len(self.traffic)):
                direction, message, _ = self.traffic[i]
                if direction == "in" and isinstance(message, dict) and predicate(message):
                    found.append(i + 1)
                    return True
            return self.ended

        with self.cond:
            if not self.cond.wait_for(look, timeout) or not found:
                raise ClientError("the awaited message did not come" + (" before the agent ended" if self.ended else ""))
        return found[0]

    def mark(self):
        with self.cond:
            return len(self.traffic)

    def close(self, timeout=5.0):
        """End of input; the agent must exit by itself. (exit code, seconds)"""
        start = time.monotonic()
        try:
            self.proc.stdin.close()
        except OSError:
            pass
        try:
            code = self.proc.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ClientError(f"the agent did not exit within {timeout} s of end of input")
        finally:
            self.stderr.close()
        self.reader.join(5)
        return code, time.monotonic() - start

    def kill(self):
        try:
            os.kill(self.proc.pid, signal.SIGKILL)
        except OSError:
            pass
        self.proc.wait()
        self.reader.join(5)
        self.stderr.close()

"""Is what the agent printed valid, and in a permitted order?

Takes the traffic of one process (client.py) and returns faults as text. The client's own messages are checked too, so
that the tests do not teach the agent a wrong dialect.
"""
import json
import os

CHUNKS = ("user_message_chunk", "agent_message_chunk", "agent_thought_chunk")
TURN_UPDATES = ("agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan")
GATES = {
    "fs/read_text_file": lambda c: c.get("fs", {}).get("readTextFile"),
    "fs/write_text_file": lambda c: c.get("fs", {}).get("writeTextFile"),
    "terminal/create": lambda c: c.get("terminal"), "terminal/output": lambda c: c.get("terminal"),
    "terminal/wait_for_exit": lambda c: c.get("terminal"), "terminal/kill": lambda c: c.get("terminal"),
    "terminal/release": lambda c: c.get("terminal"), "elicitation/create": lambda c: c.get("elicitation"),
}
RANK = {"pending": 0, "in_progress": 1, "completed": 2, "failed": 2}


class Session:
    def __init__(self):
        self.open_turns = 0
        self.replaying = False
        self.calls = {}              # id -> rank of its last status
        self.views = {}              # id -> title, kind, rawInput as announced


class Validator:
    def __init__(self, schema, traffic):
        self.schema, self.traffic, self.faults = schema, traffic, []
        self.sent, self.answered, self.asked = {}, set(), {}
        self.sessions, self.capabilities, self.modes = {}, {}, set()
        self.first_line = True

    def run(self):
        for direction, message, raw in self.traffic:
            self.raw = raw
            if direction == "out":
                if message is not None:
                    self._out(message)
            elif self._line(message, raw):
                self._in(message)
        return self.faults

    def fault(self, text):
        self.faults.append(f"{text}\n    line: {self.raw[:400].decode('utf-8', 'replace').rstrip()}")

    # What we sent.

    def _out(self, m):
        method, key = m.get("method"), json.dumps(m.get("id"))
        params = m.get("params") or {}
        if method is None:
            if key in self.asked and "result" in m:
                self._schema("client", self.asked.pop(key), "Response", m["result"], "our answer")
            return
        if "id" in m:
            self.sent[key] = m
        if method == "initialize":
            self.capabilities = params.get("clientCapabilities") or {}
        session = self.sessions.setdefault(params.get("sessionId"), Session()) if "sessionId" in params else None
        if method == "session/prompt" and session:
            session.open_turns += 1
        if method == "session/load" and session:
            session.replaying, session.calls, session.views = True, {}, {}

    # What the agent printed.

    def _line(self, message, raw):
        if raw.startswith(b"\xef\xbb\xbf") or b"\r" in raw or not raw.endswith(b"\n"):
            self.fault("a BOM, a carriage return or no line end")
        if message is None:
            self.fault("not JSON in UTF-8")
            return False
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            self.fault("not a JSON-RPC 2.0 object")
            return False
        allowed = {"jsonrpc", "id", "method", "params"} if "method" in message else {"jsonrpc", "id", "result", "error"}
        if set(message) - allowed:
            self.fault(f"extra members in the envelope: {sorted(set(message) - allowed)}")
        if "\ud800" <= max(raw.decode("utf-8", "replace"), default="") <= "\udfff":
            self.fault("a lone surrogate")
        return True

    def _in(self, m):
        if "method" not in m:
            self._answer(m)
        elif "id" in m:
            self._request(m)
        else:
            self._notification(m)
        self.first_line = False

    def _schema(self, receiver, method, kind, value, what):
        name = self.schema.definition(receiver, method, kind)
        if name is None:
            self.fault(f"{what}: the protocol has no {kind.lower()} {method} towards the {receiver}")
            return
        for text in self.schema.check(name, value):
            self.fault(f"{what} is no valid {name}: {text}")

    def _answer(self, m):
        key = json.dumps(m.get("id"))
        if ("result" in m) == ("error" in m):
            self.fault("an answer needs exactly one of result and error")
            return
        if "result" in m and m["result"] is None:
            self.fault("a null result")
        if "error" in m:
            for text in self.schema.check("Error", m["error"]):
                self.fault(f"no valid Error: {text}")
        if m.get("id") is None:
            if "error" not in m:
                self.fault("a result without id")
            return
        if key not in self.sent:
            self.fault(f"an answer to {key}, which nobody asked (an id keeps its type)")
            return
        if key in self.answered:
            self.fault(f"a second answer to {key}")
        self.answered.add(key)
        request = self.sent[key]
        method, params = request["method"], request.get("params") or {}
        if "result" in m and not method.startswith("_"):
            self._schema("agent", method, "Response", m["result"], f"result of {method}")
        if self.first_line and method != "initialize" and "error" not in m:
            self.fault("the first line is not the answer to initialize")
        session = self.sessions.get(params.get("sessionId"))
        if method in ("session/new", "session/load") and "result" in m and isinstance(m["result"], dict):
            name = m["result"].get("sessionId", params.get("sessionId"))
            if method == "session/new":
                if name in self.sessions:
                    self.fault("something named the new session before the result of session/new")
                self.sessions[name] = Session()
            else:
                self.sessions[name].replaying = False
            if m["result"].get("modes"):
                self.modes.add(name)
        if method == "session/prompt" and session:
            session.open_turns -= 1
            if session.open_turns > 0:
                return               # a second prompt was refused while the first one runs
            unfinished = sorted(i for i, rank in session.calls.items() if rank < 2)
            if unfinished:
                self.fault(f"the turn was answered while calls had no final status: {unfinished}")

    def _request(self, m):
        method, params = m["method"], m.get("params") or {}
        self._schema("client", method, "Request", m.get("params"), method)
        self.asked[json.dumps(m["id"])] = method
        if method in GATES and not GATES[method](self.capabilities):
            self.fault(f"{method} although the client did not offer it")
        if method == "session/request_permission":
            self._permission(params)

    def _permission(self, params):
        session = self.sessions.get(params.get("sessionId"))
        call = params.get("toolCall") or {}
        if session is None or session.open_turns < 1:
            self.fault("a permission outside a turn")
            return
        view = session.views.get(call.get("toolCallId"))
        if view is None:
            self.fault("a permission before the tool_call it is about")
            return
        for member in ("title", "kind", "rawInput"):
            if call.get(member) != view.get(member):
                self.fault(f"the permission's {member} is not that of its tool_call")
        self._status(session, call)
        ids = [o.get("optionId") for o in params.get("options", [])]
        if len(set(ids)) != len(ids) or not ids:
            self.fault("options need distinct ids")

    def _notification(self, m):
        method, params = m["method"], m.get("params") or {}
        self._schema("client", method, "Notification", m.get("params"), method)
        if method != "session/update":
            return
        session = self.sessions.get(params.get("sessionId"))
        if session is None:
            self.fault("an update of a session that the client does not know yet")
            return
        update = params.get("update") or {}
        kind = update.get("sessionUpdate")
        if kind in TURN_UPDATES and session.open_turns < 1 and not session.replaying:
            self.fault(f"{kind} outside a turn")
        if kind == "user_message_chunk" and not session.replaying:
            self.fault("a user message that is no replay")
        if kind in CHUNKS and not update.get("messageId"):
            self.fault("a chunk without messageId")
        if kind == "current_mode_update" and params["sessionId"] not in self.modes:
            self.fault("a mode update although no modes were offered")
        if kind in ("tool_call", "tool_call_update"):
            self._call(session, update, kind)

    def _status(self, session, update):
        if "status" not in update:
            return
        name, rank = update["toolCallId"], RANK[update["status"]]
        if rank < session.calls[name] or session.calls[name] == 2:
            self.fault(f"status of {name} went back to {update['status']}")
        session.calls[name] = rank

    def _call(self, session, update, kind):
        name = update.get("toolCallId")
        if kind == "tool_call":
            if name in session.calls:
                self.fault(f"toolCallId {name} used twice in one session")
            for member in ("title", "kind", "rawInput", "status"):
                if member not in update:
                    self.fault(f"a tool_call without {member}")
            session.calls[name] = -1
            session.views[name] = dict(update)
        elif name not in session.calls:
            self.fault(f"a tool_call_update before the tool_call of {name}")
            return
        self._status(session, update)
        for location in update.get("locations") or []:
            if not os.path.isabs(location.get("path", "")) or location.get("line", 1) == 0:
                self.fault("a location needs an absolute path and a 1-based line")
        for item in update.get("content") or []:
            if item.get("type") == "diff" and not os.path.isabs(item.get("path", "")):
                self.fault("a diff needs an absolute path")


def validate(schema, traffic):
    return Validator(schema, traffic).run()

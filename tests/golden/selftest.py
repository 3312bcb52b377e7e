#!/usr/bin/env python3
"""The checks of the golden runner can fail: traffic with one thing wrong each must be reported, and right traffic not."""
import copy
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import model_requests                     # noqa: E402
import normalise                          # noqa: E402
from schema import Schema                 # noqa: E402
from validate import validate             # noqa: E402

S = "s-1"


def out(method=None, request_id=None, **body):
    message = {"jsonrpc": "2.0"}
    if request_id is not None:
        message["id"] = request_id
    if method:
        message["method"] = method
    message.update(body)
    return ["out", message]


def got(**body):
    return ["in", {"jsonrpc": "2.0", **body}]


def update(**body):
    return got(method="session/update", params={"sessionId": S, "update": body})


CALL = {"toolCallId": "c1", "title": "ls", "kind": "execute", "rawInput": {"command": "ls"}}
GOOD = [
    out("initialize", 1, params={"protocolVersion": 1, "clientCapabilities": {}}),
    got(id=1, result={"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}),
    out("session/new", 2, params={"cwd": "/w", "mcpServers": []}),
    got(id=2, result={"sessionId": S}),
    out("session/prompt", 3, params={"sessionId": S, "prompt": [{"type": "text", "text": "x"}]}),
    update(sessionUpdate="agent_message_chunk", messageId="m1", content={"type": "text", "text": "hi"}),
    update(sessionUpdate="tool_call", status="pending", locations=[{"path": "/w/a"}], **CALL),
    got(id=1, method="session/request_permission",
        params={"sessionId": S, "toolCall": {**CALL, "status": "pending"}, "options": [{"optionId": "a", "name": "Allow", "kind": "allow_once"}]}),
    out(None, 1, result={"outcome": {"outcome": "selected", "optionId": "a"}}),
    update(sessionUpdate="tool_call_update", toolCallId="c1", status="completed",
           content=[{"type": "diff", "path": "/w/a", "oldText": None, "newText": "x"}]),
    got(id=3, result={"stopReason": "end_turn"}),
]

# What is done to GOOD, and a part of the fault that must be reported.
BROKEN = {
    "a null result": (lambda t: t[10][1].update(result=None), "null result"),
    "an answer twice": (lambda t: t.append(t[10]), "second answer"),
    "an id of another type": (lambda t: t[10][1].update(id="3"), "nobody asked"),
    "an extra envelope member": (lambda t: t[10][1].update(extra=1), "extra members"),
    "result and error": (lambda t: t[10][1].update(error={"code": 1, "message": "x"}), "exactly one"),
    "a misspelt optional member": (lambda t: t[9][1]["params"]["update"]["content"][0].update(oldtext="x"), "not a member"),
    "a wrong type": (lambda t: t[5][1]["params"]["update"].update(content=[]), "content"),
    "an unknown update": (lambda t: t[5][1]["params"]["update"].update(sessionUpdate="chatter"), "unknown sessionUpdate"),
    "an unknown stop reason": (lambda t: t[10][1].update(result={"stopReason": "done"}), "stopReason"),
    "a chunk without messageId": (lambda t: t[5][1]["params"]["update"].pop("messageId"), "without messageId"),
    "an update after the turn": (lambda t: t.append(t[5]), "outside a turn"),
    "an update before session/new": (lambda t: t.insert(3, t[5]), "does not know yet"),
    "a permission before its call": (lambda t: t.insert(6, t.pop(7)), "before the tool_call"),
    "a permission about something else": (lambda t: t[7][1]["params"]["toolCall"].update(title="rm"), "title is not"),
    "an update before its call": (lambda t: t.insert(6, t.pop(9)), "before the tool_call of"),
    "a call used twice": (lambda t: t.insert(8, t[6]), "used twice"),
    "a call left open": (lambda t: t[9][1]["params"]["update"].update(status="in_progress"), "no final status"),
    "a status that goes back": (lambda t: t.insert(10, update(sessionUpdate="tool_call_update", toolCallId="c1",
                                                                status="pending")), "went back"),
    "a permission for a call that already runs": (lambda t: t.insert(7, update(sessionUpdate="tool_call_update",
                                                                     toolCallId="c1", status="in_progress")), "went back"),
    "a relative path": (lambda t: t[9][1]["params"]["update"]["content"][0].update(path="a"), "absolute path"),
    "a gated method": (lambda t: t.insert(5, got(id=9, method="fs/read_text_file", params={"sessionId": S, "path": "/a"})),
                       "did not offer"),
    "a method that only agents serve": (lambda t: t.insert(5, got(id=9, method="session/list", params={})), "has no request"),
    "a mode update without modes": (lambda t: t.insert(5, update(sessionUpdate="current_mode_update", currentModeId="x")),
                                     "no modes"),
    "a wrong request of ours": (lambda t: t[8][1].update(result={"outcome": {"outcome": "yes"}}), "our answer"),
    "something before initialize": (lambda t: t.insert(1, t.pop(3)), ""),
}


def traffic(lines):
    return [(d, m, json.dumps(m).encode() + b"\n") for d, m in lines]


def main():
    folder = subprocess.run([sys.argv[1]], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    schema = Schema(os.path.join(folder, "node_modules/@agentclientprotocol/sdk/schema/v1/schema.json"))
    failures = []
    if validate(schema, traffic(GOOD)):
        failures.append(f"right traffic is reported: {validate(schema, traffic(GOOD))}")
    for name, (change, part) in BROKEN.items():
        lines = copy.deepcopy(GOOD)
        change(lines)
        faults = validate(schema, traffic(lines))
        if not any(part in fault for fault in faults):
            failures.append(f"{name}: {part!r} was not reported, but: {faults}")
    for raw in (b"not json\n", b'{"jsonrpc":"2.0","id":3,"result":{}}\r\n', b'\xef\xbb\xbf{}\n', b'{"jsonrpc":"2.0","x":"\xff"}\n'):
        try:
            message = json.loads(raw.decode())
        except ValueError:
            message = None
        if not validate(schema, traffic(GOOD) + [("in", message, raw)]):
            failures.append(f"{raw!r} passes")

    def body(messages, model="m"):
        return json.dumps({"model": model, "messages": messages})
    user, call = {"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}]}
    result = {"role": "tool", "tool_call_id": "1", "content": "y"}
    if model_requests.check([body([user]), body([user, call, result])]):
        failures.append("right requests are reported")
    for name, bodies in {"a call without result": [body([user, call, user])], "a result without call": [body([user, result])],
                         "two results": [body([user, call, result, result])], "history changed": [body([user]), body([result])],
                         "history shrank": [body([user, user]), body([user])], "ends with the assistant": [body([call])],
                         "messages not last": ['{"messages": [], "model": "m"}']}.items():
        if not model_requests.check(bodies):
            failures.append(f"requests: {name} passes")
    names = normalise.Names("/var/tmp/acp-golden-x", "landlock")
    if names.text("a: Permission denied") != "a: {denial}" or "{denial}" in names.text("a: Read-only file system"):
        failures.append("a denial is replaced only where it is this runner's")
    print("\n".join(failures) or f"{len(BROKEN)} broken conversations are reported")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

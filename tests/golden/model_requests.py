"""Rules every sequence of model requests obeys, and the short form the golden keeps of them."""
import json

END = "]}"


def _pairing(messages):
    faults, waiting = [], []
    for i, m in enumerate(messages):
        role = m.get("role")
        if role == "tool":
            if m.get("tool_call_id") not in waiting:
                faults.append(f"message {i}: the result of {m.get('tool_call_id')!r}, which is not open")
            else:
                waiting.remove(m["tool_call_id"])
            continue
        if waiting:
            faults.append(f"message {i}: calls without result before it: {waiting}")
            waiting = []
        if role == "assistant":
            ids = [c.get("id") for c in m.get("tool_calls", [])]
            if len(set(ids)) != len(ids):
                faults.append(f"message {i}: call ids are not distinct")
            for call in m.get("tool_calls", []):
                if not isinstance(call.get("function", {}).get("arguments"), str):
                    faults.append(f"message {i}: arguments are no string")
            if not ids and not m.get("content"):
                faults.append(f"message {i}: an assistant message with neither text nor calls")
            waiting = list(ids)
    if waiting:
        faults.append(f"calls without result at the end: {waiting}")
    if messages and messages[-1].get("role") == "assistant":
        faults.append("the last message is the assistant's")
    return faults


def head(body):
    """The bytes before the first message after the system message; what must not change from step to step."""
    parsed = json.loads(body)
    return json.dumps({k: v for k, v in parsed.items() if k != "messages"}, sort_keys=True)


def check(bodies):
    """Faults of one session's requests, in order (exact texts as sent)."""
    faults, previous = [], None
    for n, body in enumerate(bodies):
        parsed = json.loads(body)
        if list(parsed)[-1] != "messages" or not body.endswith(END):
            faults.append(f"request {n}: messages is not the last member")
            continue
        faults += [f"request {n}: {text}" for text in _pairing(parsed["messages"])]
        if previous is not None and head(previous) == head(body) and not body.startswith(previous[:-len(END)]):
            faults.append(f"request {n}: does not start with request {n - 1}")
        previous = body
    return faults


def short(bodies):
    """Parsed requests for the golden. One that continues the one before it is kept as what it adds: nothing is lost, as
    check() has compared the bytes."""
    out, previous = [], None
    for body in bodies:
        parsed = json.loads(body)
        if previous is not None and body == previous:
            out.append({"again": True})
        elif previous is not None and head(previous) == head(body) and body.startswith(previous[:-len(END)]):
            out.append({"added_messages": parsed["messages"][len(json.loads(previous)["messages"]):]})
        else:
            out.append(parsed)
        previous = body
    return out

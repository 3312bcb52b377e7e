"""Traffic folded to what a user sees at the end: chunks of one message joined, updates of a call folded into one state.

How a stream is cut into chunks, and how many updates of a running call reach the client, depends on how fast the client
reads; what they add up to does not. Transient updates (retries, usage) are no part of a conversation.
"""
import copy
import json

MESSAGE_CHUNKS = ("user_message_chunk", "agent_message_chunk", "agent_thought_chunk")
CALLS = ("tool_call", "tool_call_update")
REFUSALS = (-32600, -32602, -32002)


def _update(message):
    return message["params"]["update"] if message.get("method") == "session/update" else {}


def printed(traffic):
    return [m for d, m, _ in traffic if d == "in" and isinstance(m, dict)]


def joined(messages):
    """In order, neighbouring chunks of a message joined and neighbouring updates of a call folded."""
    out = []
    for message in messages:
        message = copy.deepcopy(message)
        new, old = _update(message), _update(out[-1]) if out else {}
        same_session = out and message.get("params", {}).get("sessionId") == out[-1].get("params", {}).get("sessionId")
        kind = new.get("sessionUpdate")
        if same_session and kind in MESSAGE_CHUNKS and kind == old.get("sessionUpdate") and \
                new.get("messageId") == old.get("messageId") and old["content"].get("type") == "text" == new["content"].get("type"):
            old["content"]["text"] += new["content"]["text"]
        elif same_session and kind == "tool_call_update" == old.get("sessionUpdate") and \
                new["toolCallId"] == old["toolCallId"]:
            old.update(new)
        else:
            out.append(message)
    return out


def by_session(messages, traffic):
    """Stable: first lines of no session, then each session's in order of appearance. For cases with concurrent sessions,
    whose mutual order is nobody's promise."""
    owner = {json.dumps(m.get("id")): (m.get("params") or {}).get("sessionId")
             for d, m, _ in traffic if d == "out" and m and "method" in m and "id" in m}
    groups = {None: []}
    for line in messages:
        if "method" in line:
            key = (line.get("params") or {}).get("sessionId")
        elif isinstance(line.get("result"), dict) and "sessionId" in line["result"]:
            key = line["result"]["sessionId"]
        else:
            key = owner.get(json.dumps(line.get("id")))
        groups.setdefault(key, []).append(line)
    return [line for group in groups.values() for line in group]


def conversation(traffic, session_id):
    """The conversation of one session as a list: messages and calls in order of first appearance, each in its last state."""
    items, index = [], {}
    for direction, message, _ in traffic:
        if direction != "in" or not isinstance(message, dict) or message.get("method") != "session/update":
            continue
        if message["params"].get("sessionId") != session_id:
            continue
        update = message["params"]["update"]
        kind = update.get("sessionUpdate")
        if kind in MESSAGE_CHUNKS:
            key = (kind, update.get("messageId"))
            if key not in index:
                index[key] = {"kind": kind, "messageId": update.get("messageId"), "content": []}
                items.append(index[key])
            content = index[key]["content"]
            if update["content"].get("type") == "text" and content and content[-1].get("type") == "text":
                content[-1]["text"] += update["content"]["text"]
            else:
                content.append(dict(update["content"]))
        elif kind in CALLS:
            key = ("call", update["toolCallId"])
            if key not in index:
                index[key] = {"kind": "call"}
                items.append(index[key])
            index[key].update({k: v for k, v in update.items() if k != "sessionUpdate"})
        elif kind == "plan":
            items.append(dict(update))
    return items


def prompts(traffic, session_id):
    """The prompts that the agent took: all but those it refused as a request."""
    taken = {json.dumps(m.get("id")) for m in printed(traffic) if "method" not in m
             and m.get("error", {}).get("code") not in REFUSALS}
    return [m["params"]["prompt"] for d, m, _ in traffic
            if d == "out" and m and m.get("method") == "session/prompt" and m["params"].get("sessionId") == session_id
            and json.dumps(m.get("id")) in taken]

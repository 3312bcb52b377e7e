#!/usr/bin/env python3
"""Writes one recorded model answer for a case's model.txt, in the server's own bytes.

  answer.py --text "Done." >> snapshots/my-case/model.txt
  answer.py --text "I look." --call bash '{"command": "ls {tmp}/outside"}' [--match "text of the request"]
"""
import argparse
import json
import re
import sys


def chunk(delta, finish=None, **extra):
    body = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **extra}
    return "data: " + json.dumps(body, ensure_ascii=False) + "\n\n"


def pieces(text, size=24):
    """`text` cut as a server would stream it, never inside a placeholder that the runner fills in."""
    out, start = [], 0
    while start < len(text):
        end = start + size
        for match in re.finditer(r"\{(?:tmp|unique)\}", text):
            if match.start() < end < match.end():
                end = match.end()
        out.append(text[start:end])
        start = end
    return out or [""]


def answer(text="", thought="", calls=(), finish=None, usage=True, match=None, number=1):
    out = "=== answer" + (f' match="{match}"' if match else "") + "\n"
    for piece in pieces(thought) if thought else []:
        out += chunk({"reasoning_content": piece})
    for piece in pieces(text) if text else []:
        out += chunk({"content": piece})
    for i, (name, arguments) in enumerate(calls):
        arguments = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        out += chunk({"tool_calls": [{"index": i, "id": f"call_{number}_{i + 1}", "type": "function",
                                      "function": {"name": name, "arguments": ""}}]})
        for piece in pieces(arguments, 40):
            out += chunk({"tool_calls": [{"index": i, "function": {"arguments": piece}}]})
    out += chunk({}, finish or ("tool_calls" if calls else "stop"))
    if usage:
        tokens = {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020}
        out += "data: " + json.dumps({"choices": [], "usage": tokens}) + "\n\n"
    return out + "data: [DONE]\n\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", default="")
    parser.add_argument("--thought", default="")
    parser.add_argument("--call", nargs=2, action="append", default=[], metavar=("TOOL", "ARGUMENTS"))
    parser.add_argument("--finish", help="finish_reason, when it is not the usual one")
    parser.add_argument("--match", help="use this answer only for a request that contains this text")
    parser.add_argument("--number", type=int, default=1, help="makes call ids distinct within a recording")
    o = parser.parse_args()
    sys.stdout.write(answer(o.text, o.thought, o.call, o.finish, True, o.match, o.number))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""The main job against a real model: started in read-only, its write by bash meets the denial marker, and is then granted
and, in another run, rejected; what counts is the disk. Skipped, with the reason, when no key is set.

  live.py --agent build/release/acp-agent
"""
import argparse
import os
import shlex
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
from client import Client, ClientError    # noqa: E402

KEYS = ("OPENAI_API_KEY", "DEEPSEEK_API_KEY")
MARKER = "[sandbox: file access denied under read-only mode]"
TASK = ("Use the bash tool to create the file proof.txt with the content live in the current folder. If the sandbox denies it, "
        "ask for wider access once, as the tool says. If that is refused, stop. Do nothing else.")
LIMIT = 300


def turn(agent, kind):
    """(answer, marker seen, times asked, file was written)"""
    root = tempfile.mkdtemp(prefix="acp-live-", dir="/var/tmp")
    try:
        for folder in ("workspace", "state"):
            os.mkdir(os.path.join(root, folder))
        environment = dict(os.environ, XDG_STATE_HOME=os.path.join(root, "state"), ACP_AGENT_MODE="read-only",
                           ACP_AGENT_APPROVAL="ask")
        environment.pop("ACP_AGENT_ROUTE", None)
        client = Client(agent + ["acp"], environment, "/", os.path.join(root, "stderr.txt"))
        try:
            client.wait_answer(client.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}}), 30)
            session, _ = client.wait_answer(client.request("session/new", {
                "cwd": os.path.join(root, "workspace"), "mcpServers": []}), 30)
            request = client.request("session/prompt", {"sessionId": session["result"]["sessionId"],
                                                        "prompt": [{"type": "text", "text": TASK}]})
            asked, marker, seen = 0, False, 0
            while True:
                with client.cond:
                    if not client.cond.wait_for(lambda: len(client.traffic) > seen or client.ended, LIMIT):
                        raise ClientError(f"nothing for {LIMIT} s")
                    lines, seen = client.traffic[seen:], len(client.traffic)
                for direction, message, raw in lines:
                    if direction != "in" or not isinstance(message, dict):
                        continue
                    marker = marker or MARKER.encode() in raw
                    if message.get("method") == "session/request_permission":
                        asked += 1
                        option = next(o for o in message["params"]["options"] if o["kind"] == kind)
                        client.reply(message["id"], {"outcome": {"outcome": "selected", "optionId": option["optionId"]}})
                    elif message.get("id") == request and "method" not in message:
                        written = os.path.exists(os.path.join(root, "workspace", "proof.txt"))
                        return message, marker, asked, written
                if client.ended and not lines:
                    raise ClientError("the agent ended before it answered")
        finally:
            client.kill()
    finally:
        shutil.rmtree(root, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", required=True, type=shlex.split)
    options = parser.parse_args()
    if not any(os.environ.get(key) for key in KEYS):
        print(f"SKIP live: none of {', '.join(KEYS)} is set, so there is no real model to talk to")
        return 0
    agent = options.agent[:-1] + [os.path.abspath(options.agent[-1])]
    failed = False
    for kind, want in (("allow_once", True), ("reject_once", False)):
        try:
            answer, marker, asked, written = turn(agent, kind)
        except (ClientError, KeyError) as error:
            print(f"FAIL live {kind}: {error}")
            failed = True
            continue
        good = "result" in answer and marker and asked >= 1 and written == want
        failed = failed or not good
        print(f"{'ok  ' if good else 'FAIL'} live {kind}: denial marker {'seen' if marker else 'NOT seen'}, asked {asked} times, "
              f"file {'written' if written else 'not written'}, answer {answer.get('result', answer.get('error'))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

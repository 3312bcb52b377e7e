#!/usr/bin/env python3
"""Shows one task from beginning to end: this program is the ACP client, the agent, tools and sandbox are the real ones.

With OPENAI_API_KEY or DEEPSEEK_API_KEY the real model works; else a recorded one, and the screen says so.
"""
import argparse
import json
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
from client import Client, ClientError    # noqa: E402

BOLD, DIM, RED, GREEN, YELLOW, PLAIN = ("\033[1m", "\033[2m", "\033[31m", "\033[32m", "\033[33m", "\033[0m") \
    if sys.stdout.isatty() else ("",) * 6


def show(color, mark, text):
    for i, line in enumerate(text.rstrip("\n").split("\n")):
        print(f"{color}{mark if i == 0 else ' ' * len(mark)} {line}{PLAIN}", flush=True)


class Screen:
    """Prints updates as they come; text is joined until something else happens."""

    def __init__(self):
        self.text, self.calls = "", {}

    def flush(self):
        if self.text.strip():
            show("", "agent  ", self.text.strip())
        self.text = ""

    def update(self, update):
        kind = update["sessionUpdate"]
        if kind == "agent_message_chunk":
            self.text += update["content"].get("text", "")
            return
        if kind not in ("tool_call", "tool_call_update"):
            return
        self.flush()
        call = self.calls.setdefault(update["toolCallId"], {})
        call.update(update)
        if kind == "tool_call":
            show(BOLD, "call   ", call["title"])
        if update.get("status") in ("completed", "failed"):
            self.result(call)

    def result(self, call):
        for item in call.get("content") or []:
            if item["type"] == "content" and item["content"].get("text"):
                text = item["content"]["text"]
                show(RED if "denied" in text else DIM, "result ", text[:1500])
            elif item["type"] == "diff":
                show(DIM, "diff   ", item["path"])
                for line in (item.get("oldText") or "").splitlines():
                    show(RED, "       ", "-" + line)
                for line in item["newText"].splitlines():
                    show(GREEN, "       ", "+" + line)


def ask(params):
    call = params["toolCall"]
    show(YELLOW + BOLD, "asks   ", "The agent asks for your consent: " + call.get("title", ""))
    for item in call.get("content") or []:
        if item["type"] == "content":
            show(YELLOW, "       ", item["content"].get("text", ""))
    show(YELLOW, "       ", json.dumps(call.get("rawInput"), ensure_ascii=False))
    allow = next(o for o in params["options"] if o["kind"] == "allow_once")
    reject = next(o for o in params["options"] if o["kind"] == "reject_once")
    if sys.stdin.isatty():
        try:
            yes = input(f"{YELLOW}{BOLD}        Allow it once? [y/N] {PLAIN}").strip().lower() in ("y", "yes")
        except EOFError:
            yes = False
    else:
        yes = True
        show(YELLOW + BOLD, "       ", "No terminal to ask on: this demo answers yes.")
    return {"outcome": {"outcome": "selected", "optionId": (allow if yes else reject)["optionId"]}}


def show_files(root):
    print(f"\n{BOLD}Files afterwards{PLAIN}")
    for top in ("workspace", "outside"):
        for folder, folders, files in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(files):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8", errors="replace") as f:
                    show("", "       ", f"{os.path.relpath(path, root)}: {f.read().rstrip()!r}")


def converse(client, workspace, prompt):
    screen, done = Screen(), 0
    request = client.request("initialize", {"protocolVersion": 1, "clientCapabilities": {},
                                            "clientInfo": {"name": "demo", "version": "1"}})
    hello, waited = client.wait_answer(request, 30)
    info = hello["result"].get("agentInfo", {})
    show(DIM, "acp    ", f"initialize: {info.get('name')} {info.get('version')}, protocol {hello['result']['protocolVersion']}")
    answer, _ = client.wait_answer(client.request("session/new", {"cwd": workspace, "mcpServers": []}), 30)
    if "error" in answer:
        raise ClientError(f"session/new: {answer['error']['message']}")
    show(BOLD, "you    ", prompt)
    request = client.request("session/prompt", {"sessionId": answer["result"]["sessionId"],
                                                "prompt": [{"type": "text", "text": prompt}]})
    while True:
        with client.cond:
            client.cond.wait_for(lambda: len(client.traffic) > done or client.ended, 600)
            lines, done = client.traffic[done:], len(client.traffic)
        for direction, message, _ in lines:
            if direction != "in" or not isinstance(message, dict):
                continue
            if message.get("method") == "session/update":
                screen.update(message["params"]["update"])
            elif message.get("method") == "session/request_permission":
                screen.flush()
                client.reply(message["id"], ask(message["params"]))
            elif message.get("id") == request and "method" not in message:
                screen.flush()
                return message
        if client.ended and not lines:
            raise ClientError("the agent ended before it answered")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agent", required=True)
    options = parser.parse_args()
    root = tempfile.mkdtemp(prefix="acp-agent-demo-", dir="/var/tmp")
    for folder in ("workspace", "outside", "state"):
        os.mkdir(os.path.join(root, folder))
    workspace = os.path.join(root, "workspace")
    with open(os.path.join(workspace, "notes.txt"), "w", encoding="utf-8") as f:
        f.write("Shopping: bread\n")
    environment = dict(os.environ, XDG_STATE_HOME=os.path.join(root, "state"))
    key = next((name for name in ("OPENAI_API_KEY", "DEEPSEEK_API_KEY") if os.environ.get(name)), None)
    print(f"{BOLD}A task for acp-agent in {workspace}{PLAIN}")
    if key:
        show(BOLD, "model  ", f"the real one ({key} is set)")
    else:
        show(BOLD, "model  ", "RECORDED answers: neither OPENAI_API_KEY nor DEEPSEEK_API_KEY is set. Tools and sandbox are real.")
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "model.txt"), encoding="utf-8") as f:
            text = f.read().replace("{tmp}", root)
        with open(os.path.join(root, "model.txt"), "w", encoding="utf-8") as f:
            f.write(text)
        environment.update(ACP_AGENT_ROUTE="recorded", ACP_AGENT_RECORDING=os.path.join(root, "model.txt"))
    prompt = (f"In notes.txt replace bread by cheese. Then write the first line of notes.txt to {root}/outside/report.txt with a "
              "shell command, which lies outside the workspace.")
    client = Client([os.path.abspath(options.agent), "acp"], environment, "/", os.path.join(root, "stderr.txt"))
    try:
        answer = converse(client, workspace, prompt)
        show(DIM, "acp    ", f"answer to the prompt: {json.dumps(answer.get('result', answer.get('error')))}")
        client.close(10)
    except ClientError as error:
        client.kill()
        with open(os.path.join(root, "stderr.txt"), encoding="utf-8", errors="replace") as f:
            print(f"The demo failed: {error}\n{f.read()}", file=sys.stderr)
        return 1
    show_files(root)
    print(f"\nThe session's log is below {root}/state; remove it all with: rm -r {root}")
    return 0 if "result" in answer else 1


if __name__ == "__main__":
    sys.exit(main())

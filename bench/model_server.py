"""A model server on 127.0.0.1 whose answers are given in advance and whose clock says when each byte came and went.

One session at a time: every request with tools takes the next answer of the script. Chat completions for our agent,
responses for the peer. Started as its own process, so that the client's work is outside the stamps.
"""
import json
import socket
import sys
import threading
import time

now = time.monotonic_ns


def sse(body, event=None):
    return (f"event: {event}\n" if event else "") + f"data: {json.dumps(body)}\n\n"


def chat_answer(call, n):
    def chunk(delta, finish=None):
        return sse({"id": f"c{n}", "object": "chat.completion.chunk", "model": "mock",
                    "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    if call is None:
        return chunk({"content": "ok"}) + chunk({}, "stop") + "data: [DONE]\n\n"
    name, arguments = call
    call = {"index": 0, "id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return chunk({"tool_calls": [call]}) + chunk({}, "tool_calls") + "data: [DONE]\n\n"


def responses_answer(call, n):
    if call is None:
        item = {"type": "message", "id": f"m{n}", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "ok", "annotations": []}]}
    else:
        item = {"type": "function_call", "id": f"f{n}", "call_id": f"call_{n}", "name": call[0],
                "arguments": json.dumps(call[1]), "status": "completed"}
    whole = {"id": f"r{n}", "object": "response", "model": "mock", "output": [item], "status": "completed",
             "usage": {"input_tokens": 1000, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 10,
                       "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 1010}}
    events = [("response.created", {"response": {**whole, "output": [], "status": "in_progress"}}),
              ("response.output_item.done", {"output_index": 0, "item": item}),
              ("response.completed", {"response": whole})]
    return "".join(sse({"type": t, **body}, t) for t, body in events)


def tools_of(body):
    return [t.get("name") or t.get("function", {}).get("name") for t in body.get("tools") or []]


class Server:
    """Script and stamps. `script` holds lists of candidate calls; the first whose tool is offered is called."""

    def __init__(self):
        self.script, self.stamps, self.lock, self.n = [], [], threading.Lock(), 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def serve(self):
        while True:
            connection, _ = self.listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.connection, args=(connection,), daemon=True).start()

    def connection(self, connection):
        data = b""
        try:
            while True:
                while b"\r\n\r\n" not in data:
                    more = connection.recv(1 << 16)
                    if not more:
                        return
                    data += more
                head, data = data.split(b"\r\n\r\n", 1)
                lines = head.decode("latin1").split("\r\n")
                headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
                if headers.get("expect", "").lower() == "100-continue":
                    connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                length = int(headers.get("content-length", 0))
                while len(data) < length:
                    more = connection.recv(1 << 18)
                    if not more:
                        return
                    data += more
                arrived = now()
                body, data = data[:length], data[length:]
                self.answer(connection, lines[0].split()[1], body, arrived)
        except OSError:
            pass
        finally:
            connection.close()

    def answer(self, connection, path, body, arrived):
        try:
            request = json.loads(body) if body else {}
        except ValueError:
            request = {}
        tools = tools_of(request)
        if not path.endswith(("/chat/completions", "/responses")):
            connection.sendall(b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\ncontent-type: application/json\r\n\r\n{}")
            return
        with self.lock:
            self.n += 1
            candidates = self.script.pop(0) if tools and self.script else []
            stamp = {"arrived": arrived, "bytes": len(body), "tools": tools, "main": bool(tools)}
            self.stamps.append(stamp)
        call = next(((name, args) for name, args in candidates if name in tools), None)
        if candidates and call is None:
            stamp["error"] = f"none of {[name for name, _ in candidates]} is offered: {tools}"
        text = (chat_answer if path.endswith("/chat/completions") else responses_answer)(call, self.n).encode()
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                           + f"{len(text):x}\r\n".encode() + text + b"\r\n0\r\n\r\n")
        stamp["sent"] = now()


def main():
    """Commands on stdin, one JSON a line: a list is a new script, null asks for the stamps since the last script."""
    server = Server()
    threading.Thread(target=server.serve, daemon=True).start()
    print(server.port, flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        with server.lock:
            if command is None:
                print(json.dumps(server.stamps), flush=True)
            else:
                server.script, server.stamps = command, []
                print("ok", flush=True)


if __name__ == "__main__":
    main()

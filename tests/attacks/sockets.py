"""Programs of the host that listen on sockets, and sockets of one's own."""
import os
import shutil
import socket
import threading

from case import decided, holds, prints, refused, works, writes

CASES = []
REACHED = holds("host/reached", "reached")


def serving(where, kind=socket.SOCK_STREAM):
    def setup(w):
        path = where.replace("{unique}", w.unique)
        if path[0] == "@":
            path = "\0" + path[1:]
        else:
            path = w.path(path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
        w.serve(path, kind)
    return setup


CASES += [
    refused("abstract-socket", '"$ATTACK" connect "@attack-$UNIQUE"', REACHED, setup=serving("@attack-{unique}")),
    refused("abstract-datagram", '"$ATTACK" datagram "@attack-$UNIQUE"; sleep 0.05', REACHED,
            setup=serving("@attack-{unique}", socket.SOCK_DGRAM)),
    decided("path-socket", '"$ATTACK" connect "$BASE/r/s"', REACHED, "connecting is no file effect; the server decides",
            setup=serving("r/s")),
    decided("path-datagram", '"$ATTACK" datagram "$BASE/r/s"; sleep 0.05', REACHED,
            "sending is no file effect; the server decides",
            setup=serving("r/s", socket.SOCK_DGRAM)),
    decided("descriptor-from-a-server", '"$ATTACK" receive-fd "$BASE/r/s"', holds("host/given", "PWN"),
            "what a host program hands over is its own gift", setup=serving("r/s")),
    decided("socket-in-tmp", '"$ATTACK" connect "/tmp/attack-$UNIQUE/s"', REACHED,
            "connecting is no file effect; the server decides",
            setup=serving("/tmp/attack-{unique}/s"), undo=lambda w: (os.remove(f"/tmp/attack-{w.unique}/s"),
                os.rmdir(f"/tmp/attack-{w.unique}"))),
]

# Sockets that give away the host: whoever reaches them starts programs outside.
CONTROL = (
    ("ssh-agent", "r/agent.s", lambda w: {"SSH_AUTH_SOCK": w.base + "/r/agent.s"}),
    ("session-bus", "r/bus", lambda w: {"XDG_RUNTIME_DIR": w.base + "/r",
                                        "DBUS_SESSION_BUS_ADDRESS": f"unix:path={w.base}/r/bus"}),
    ("service-manager", "r/systemd/private", lambda w: {"XDG_RUNTIME_DIR": w.base + "/r"}),
    ("docker", "r/docker.sock", lambda w: {"XDG_RUNTIME_DIR": w.base + "/r", "DOCKER_HOST": f"unix://{w.base}/r/docker.sock"}),
    ("podman", "r/podman/podman.sock", lambda w: {"XDG_RUNTIME_DIR": w.base + "/r"}),
    ("display", "r/wayland-0", lambda w: {"XDG_RUNTIME_DIR": w.base + "/r", "WAYLAND_DISPLAY": "wayland-0"}),
)
for name, where, env in CONTROL:
    CASES.append(refused("control-socket-" + name, f'"$ATTACK" connect "$BASE/{where}"', REACHED, setup=serving(where),
                         env=env))


def behind_another_owners_door(w):
    serving("r/docker.sock")(w)
    os.chmod(w.base + "/r/docker.sock", 0o600)
    os.chown(w.base + "/r/docker.sock", 1234, 1234)
    os.chown(w.base + "/r", 1234, 1234)
    os.chmod(w.base + "/r", 0o700)


# Root gets through every door, with the capability it keeps inside.
CASES.append(refused("control-socket-of-another-owner", '"$ATTACK" connect "$BASE/r/docker.sock"', REACHED,
                     setup=behind_another_owners_door, users=("root",),
                     env=lambda w: {"DOCKER_HOST": f"unix://{w.base}/r/docker.sock"}))


def tmux(w):
    w.note["tmux"] = f"/tmp/attack-{w.unique}/tmux-{w.own_uid}"
    serving(w.note["tmux"] + "/default")(w)


CASES.append(refused("control-socket-renamed", 'mv "$TMUX_TMPDIR"/tmux-*/default "$TMUX_TMPDIR/other"; '
                     'ln "$TMUX_TMPDIR"/tmux-*/default "$TMUX_TMPDIR/second"; ln -s tmux-$(id -u)/default "$TMUX_TMPDIR/soft"; '
                     'for name in other second soft; do "$ATTACK" connect "$TMUX_TMPDIR/$name"; done', REACHED, setup=tmux,
                     env=lambda w: {"TMUX_TMPDIR": f"/tmp/attack-{w.unique}"},
                     undo=lambda w: shutil.rmtree(f"/tmp/attack-{w.unique}")))


def network_server(w):
    server = socket.create_server(("127.0.0.1", 0))
    w.note["port"] = str(server.getsockname()[1])

    def answer():
        try:
            peer, _ = server.accept()
        except OSError:
            return
        with open(w.host_dir + "/reached", "w", encoding="utf-8") as f:
            f.write("reached\n")
        peer.close()
    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    w.closers.append(lambda: (server.shutdown(socket.SHUT_RDWR), thread.join(1), server.close()))


CASES += [
    decided("network-of-the-host", 'exec 9<>"/dev/tcp/127.0.0.1/$PORT"; cat <&9', REACHED,
            "the modes are about files; the network is not governed",
            setup=network_server, env=lambda w: {"PORT": w.note.get("port", "")}),
    works("network-of-ones-own", """/usr/bin/python3 -c '
import socket
s = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(s.getsockname()); p, _ = s.accept()
c.sendall(b"yes"); print(p.recv(3).decode())'""", prints("yes")),
    works("socket-pair", """/usr/bin/python3 -c '
import socket; a, b = socket.socketpair(); a.send(b"yes"); print(b.recv(3).decode())'""", prints("yes")),
    works("abstract-socket-of-ones-own", """/usr/bin/python3 -c '
import os, socket
s = socket.socket(socket.AF_UNIX); s.bind("\\0own-" + os.environ["UNIQUE"]); s.listen(); c = socket.socket(socket.AF_UNIX)
c.connect(s.getsockname()); p, _ = s.accept(); c.send(b"yes"); print(p.recv(3).decode())'""", prints("yes")),
    writes("path-socket-of-ones-own", """/usr/bin/python3 -c '
import socket
s = socket.socket(socket.AF_UNIX); s.bind("s"); s.listen(); c = socket.socket(socket.AF_UNIX)
c.connect("s"); p, _ = s.accept(); c.send(b"yes"); open("result", "wb").write(p.recv(3))'""", holds("ws/result", "yes")),
]

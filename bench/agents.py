"""How each measured agent is started, and which calls of its tools mean "run this" and "read that"."""
import os
import platform
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
PEER = "codex-acp"


def ours(binary, root, port):
    environment = {"OPENAI_API_KEY": "mock", "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1", "OPENAI_MODEL": "mock",
                   "XDG_STATE_HOME": os.path.join(root, "state")}
    return {"name": "acp-agent", "argv": [os.path.abspath(binary), "acp"], "env": environment,
            "bash": lambda command: [("bash", {"command": command})], "read": lambda path: [("read", {"file_path": path})]}


def peer(root, port):
    """codex-acp, pinned by bench/peer/package-lock.json: native like ours, and run unconfined as others run by default."""
    prefix = install_peer()
    machine = {"x86_64": "x64", "aarch64": "arm64"}[platform.machine()]
    home = os.path.join(root, "codex")
    os.makedirs(home, exist_ok=True)
    with open(os.path.join(home, "config.toml"), "w", encoding="utf-8") as f:
        f.write(f'''model = "gpt-5.1-codex"
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[model_providers.mock]
name = "mock"
base_url = "http://127.0.0.1:{port}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
[analytics]
enabled = false
[feedback]
enabled = false
[otel]
exporter = "none"
''')
    shell = lambda command: [("shell_command", {"command": command}), ("exec_command", {"cmd": command}),
                             ("shell", {"command": ["bash", "-c", command]})]
    return {"name": PEER, "argv": [f"{prefix}/node_modules/@zed-industries/codex-acp-linux-{machine}/bin/codex-acp"],
            "env": {"OPENAI_API_KEY": "mock", "CODEX_HOME": home}, "bash": shell, "read": lambda path: shell("cat " + path)}


def install_peer():
    source = os.path.join(HERE, "peer")
    prefix = os.path.join("/var/tmp", f"acp-agent-tests-{os.getuid()}", "bench-peer")
    os.makedirs(prefix, exist_ok=True)
    for name in ("package.json", "package-lock.json", ".npmrc"):
        with open(os.path.join(source, name), encoding="utf-8") as f, open(os.path.join(prefix, name), "w", encoding="utf-8") as out:
            out.write(f.read())
    subprocess.run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], cwd=prefix, check=True,
                   stdout=subprocess.DEVNULL)
    return prefix

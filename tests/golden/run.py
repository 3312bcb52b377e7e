#!/usr/bin/env python3
"""Runs golden cases: snapshots/<case>/ against a built agent. See README.md beside this file.

  run.py --agent build/release/acp-agent --installed-schema tests/clients/install.sh [--update] [--keep] [CASE…]

Each case runs on every runner it names. A runner that does not work here is skipped with the kernel's reason; with
CI=true that fails, and elsewhere at least one confining runner must have run.
"""
import argparse
import concurrent.futures
import difflib
import os
import shlex
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from case import Case                     # noqa: E402
from schema import Schema                 # noqa: E402

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GOLDENS = ("stdout.jsonl", "commands.txt", "log.jsonl", "requests.jsonl", "files.txt")


def probe(agent, runner):
    """None when `runner` confines here, else why not."""
    with tempfile.TemporaryDirectory(prefix="acp-golden-probe-", dir="/var/tmp") as folder:
        environment = dict(os.environ, XDG_STATE_HOME=folder + "/state", HOME=folder)
        done = subprocess.run(agent + ["confine", "--mode", "read-only", "--root", folder, "--runner", runner, "--", "true"],
                              env=environment, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=60)
    return None if done.returncode == 0 else done.stderr.strip() or f"exit code {done.returncode}"


def differences(folder, goldens):
    out = []
    for name in GOLDENS:
        path = os.path.join(folder, name)
        want = ""
        if os.path.exists(path):
            with open(path, encoding="utf-8", newline="") as f:
                want = f.read()
        elif name in goldens:
            out.append(f"{name} is not recorded; look at it, then record it with --update")
        got = goldens.get(name, "")
        if want != got:
            lines = list(difflib.unified_diff(want.splitlines(), got.splitlines(), "golden/" + name, "now/" + name,
                                              lineterm="", n=0))
            out += [line if len(line) <= 1500 else around(line, lines) for line in lines[:40]]
    return out


def around(line, lines):
    """The part of a long line that differs from its counterpart."""
    others = [other for other in lines if other[:1] in "+-" and other[:1] != line[:1] and other[:3] not in ("+++", "---")]
    if not others or line[:1] not in "+-":
        return line[:1500] + " …"
    other = max(others, key=lambda o: len(os.path.commonprefix([o[1:], line[1:]])))
    at = len(os.path.commonprefix([other[1:], line[1:]]))
    return f"{line[:1]} …(from byte {at}) {line[1:][max(0, at - 200):at + 600]} …"


def update(folder, goldens):
    for name in GOLDENS:
        path = os.path.join(folder, name)
        if name in goldens:
            with open(path, "w", encoding="utf-8", newline="") as f:
                f.write(goldens[name])
        elif os.path.exists(path):
            os.remove(path)


def run_one(case, runner, options, schema, write):
    start = time.monotonic()
    result = case.run(options.agent, runner, schema, options.keep, options.slow)
    faults = list(result.faults)
    if write and not faults:
        update(case.folder, result.goldens)
    elif not faults:                 # after a fault the rest differs anyway
        faults += differences(case.folder, result.goldens)
    return faults, result.stderr, time.monotonic() - start


def run_case(name, options, schema, unavailable):
    """(failed, text)"""
    case, text, failed, ran, first = Case(os.path.join(SOURCE, "snapshots", name), SOURCE), [], False, 0, True
    for runner in case.runners():
        label = f"{name} [{runner or 'no runner'}]"
        if runner in unavailable:
            text.append(f"SKIP {label}: {unavailable[runner]}")
            failed = failed or os.environ.get("CI") == "true"
            continue
        ran += 1
        faults, stderr, seconds = run_one(case, runner, options, schema, options.update and first)
        first = False
        text.append(f"{'FAIL' if faults else 'ok  '} {label} {seconds:.1f} s")
        if faults:
            failed = True
            text += ["  " + line for fault in faults for line in fault.split("\n")]
            text.append("  stderr of the agent:\n    " + stderr[-3000:].strip().replace("\n", "\n    "))
    if not ran:
        text.append(f"FAIL {name}: none of its runners works here")
        failed = True
    return failed, "\n".join(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", required=True, type=shlex.split, help="the binary, with a wrapper if need be")
    parser.add_argument("--schema", help="the protocol's schema.json")
    parser.add_argument("--installed-schema", metavar="INSTALL", help="the script that installs the pinned SDK, which has it")
    parser.add_argument("--update", action="store_true", help="record what the first runner gives, compare the others")
    parser.add_argument("--keep", action="store_true", help="keep the folders below /var/tmp")
    parser.add_argument("--slow", type=float, default=1, help="factor on the time limits of steps, for sanitizer builds")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    options.agent[-1] = os.path.abspath(options.agent[-1])
    if options.installed_schema:
        folder = subprocess.run([options.installed_schema], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        options.schema = os.path.join(folder, "node_modules/@agentclientprotocol/sdk/schema/v1/schema.json")
    if not options.schema:
        parser.error("--schema or --installed-schema is needed")
    schema = Schema(options.schema)
    cases = options.cases or sorted(n for n in os.listdir(os.path.join(SOURCE, "snapshots"))
                                    if os.path.exists(os.path.join(SOURCE, "snapshots", n, "case.json")))
    wanted = {r for name in cases for r in Case(os.path.join(SOURCE, "snapshots", name), SOURCE).runners() if r}
    unavailable = {r: why for r in sorted(wanted) if (why := probe(options.agent, r)) is not None}
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for failed, text in pool.map(lambda name: run_case(name, options, schema, unavailable), cases):
            print(text, flush=True)
            failures += failed
    print(f"{len(cases) - failures} passed, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

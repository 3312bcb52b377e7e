#!/usr/bin/env python3
"""Tries to break out of the sandbox, and does ordinary work in it, through the real binary. See README.md beside this file.

  run.py --agent build/release/acp-agent --helper build/release/attack [--jobs N] [--runner R] [--mode M] [--user U]
         [--case NAME]
  run.py … --baseline      unconfined: every attack must have its effect, or the case proves nothing
  run.py --list            names, kinds and what is known not to hold

Every case runs on each runner, in each mode, as root and as an ordinary user (who takes turns with root where the user
makes no difference, unless --full). A runner or user that is impossible here is skipped with the reason. With CI=true a
skipped runner fails; everywhere it fails if nothing confined at all.
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import os
import pwd
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import documents                                                    # noqa: E402
import known                                                        # noqa: E402
from case import DECIDED, READ_ONLY, ROOT, WORKSPACE_WRITE          # noqa: E402
from world import Place, Tools, World                               # noqa: E402

MODULES = ("paths", "metadata", "descriptors", "processes", "kernel", "git", "sockets", "ipc", "setups", "hosts", "work")
RUNNERS, MODES, USERS = ("bwrap", "landlock"), (READ_ONLY, WORKSPACE_WRITE), ("root", "ordinary")


def load():
    cases = [dataclasses.replace(case, module=name) for name in MODULES for case in __import__(name).CASES]
    names = collections.Counter(case.name for case in cases)
    faults = [f"two cases are named {name}" for name, count in names.items() if count > 1]
    faults += known.faults(set(names)) + documents.faults(set(names))
    if faults:
        sys.exit("\n".join(faults))
    return cases


class Suite:
    def __init__(self, options):
        self.options = options
        self.base = tempfile.mkdtemp(prefix="acp-attacks-", dir="/var/tmp")
        os.chmod(self.base, 0o711)
        self.locks = collections.defaultdict(threading.Lock)
        self.tools = self.make_tools()

    def make_tools(self):
        """The ordinary user must be able to run what a test build has, wherever it lies."""
        o = self.options
        uid = pwd.getpwnam("nobody").pw_uid if o.uid is None else o.uid
        folder = os.path.join(self.base, "bin")
        os.mkdir(folder)
        os.chmod(folder, 0o755)
        helper = shutil.copy(o.helper, folder)
        os.chmod(helper, 0o755)
        agent = list(o.agent)
        beside = os.path.dirname(agent[-1])
        reachable = os.getuid() != 0 or subprocess.run(
            ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "test", "-x", agent[-1]],
            check=False).returncode == 0
        if not reachable:
            for name in (os.path.basename(agent[-1]), "landlock-run", "call-init"):
                shutil.copy(os.path.join(beside, name), folder)
                os.chmod(os.path.join(folder, name), 0o755)
            agent[-1], beside = os.path.join(folder, os.path.basename(agent[-1])), folder
        return Tools(agent, os.path.join(beside, "landlock-run"), helper, uid)

    def places(self, runners):
        modes = (WORKSPACE_WRITE,) if runners == ("none",) else MODES
        return [Place(runner, mode, user) for runner in runners for mode in modes for user in USERS
                if (not self.options.mode or mode == self.options.mode)
                and (not self.options.user or user == self.options.user)]

    def impossible(self, place):
        """None, or why nothing can run there."""
        if place.user == "root" and os.getuid() != 0:
            return "not started by root"
        if place.user == "ordinary" and os.getuid() == 0:
            probe = subprocess.run(["setpriv", f"--reuid={self.tools.uid}", f"--regid={self.tools.uid}", "--clear-groups",
                                    "true"],
                                   capture_output=True, text=True, check=False)
            if probe.returncode != 0:
                return probe.stderr.strip()
        if place.runner == "none":
            return None
        case = dataclasses.replace(self.simple, name="probe")
        world = World(os.path.join(self.base, f"probe-{place.runner}-{place.mode}-{place.user}"), case, place, self.tools)
        try:
            world.build()
            done = world.run("true")
            return None if done.code == 0 else done.err.strip() or f"exit code {done.code}"
        finally:
            world.close()

    def run_one(self, case, place):
        """(verdict, text): ok, known, fail."""
        folder = os.path.join(self.base, f"{place.runner}-{place.mode[:2]}-{place.user[0]}")
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, 0o711)
        world = World(os.path.join(folder, case.name), case, place, self.tools)
        try:
            with self.locks[case.alone or world.base]:
                try:
                    world.build()
                    if case.drive:
                        case.drive(world)
                    else:
                        world.run()
                    effect = case.effect(world)
                finally:
                    world.close()
        except Exception:                                           # a case that cannot be tried must not pass
            return "fail", "cannot be tried: " + traceback.format_exc(limit=-3).strip().replace("\n", "\n    ")
        if world.done.timed_out:
            return "fail", f"ran into the limit; {world.done.last_line()}"
        return self.verdict(case, place, effect, world)

    def verdict(self, case, place, effect, world):
        said = f"exit code {world.done.code}" + (f"; {world.done.last_line()}" if world.done.last_line() else "")
        if place.runner == "none":
            if effect:
                return "ok", str(effect)
            if case.needs and (case.needs != ROOT or place.user != "root"):
                return "ok", f"no effect here ({case.needs})"
            return "fail", f"no effect even unconfined, so the case proves nothing; {said}"
        kind = case.kind(place.mode)
        if kind == DECIDED:
            return "ok", f"{'takes place' if effect else 'does not take place'}; {said}"
        entry = known.entry_for(case.name, place)
        if entry and entry.sometimes:
            return "known", entry.reason
        if bool(effect) != world.must_refuse():
            return ("fail", f"now holds: remove it from known.py ({entry.reason})") if entry else ("ok", said)
        if entry:
            return "known", entry.reason
        return "fail", f"{kind}, and {'took place: ' + str(effect) if effect else 'did not'}; {said}"


SPREAD = ("git", "setups", "hosts", "work")


def wanted(case, place, every):
    """Whether the case is tried there. Where the user makes no difference, root and the ordinary one take turns."""
    if place.runner != "none" and place.runner not in case.runners or place.mode not in case.modes or place.user not in case.users:
        return False
    turn = "root" if (place.runner == "bwrap") == (place.mode == WORKSPACE_WRITE) else "ordinary"
    return every or len(case.users) == 1 or place.user == turn or not (case.spread or case.module in SPREAD)


def plan(cases, places, options):
    """Long ones first, so that none is left alone at the end."""
    every = options.full or options.case or options.in_turn or len({place.user for place in places}) == 1
    jobs = [(case, place) for place in places for case in cases if wanted(case, place, every)]
    if options.in_turn:
        of = {case.name: [place for other, place in jobs if other is case] for case in cases}
        jobs = [(case, of[case.name][n % len(of[case.name])]) for n, case in enumerate(cases) if of[case.name]]
    return sorted(jobs, key=lambda job: job[0].module != "work")


def report(cases, results, skipped, seconds, options):
    kinds = collections.Counter(kind for case in cases for kind in {case.kind(mode) for mode in case.modes})
    counts = collections.Counter(verdict for verdict, _ in results.values())
    reasons = collections.defaultdict(set)
    for (name, _), (verdict, text) in results.items():
        if verdict == "known":
            reasons[text].add(name)
    for reason, names in sorted(reasons.items()):
        print(f"known: {reason}: {len(names)} cases" + (": " + " ".join(sorted(names)) if options.verbose else ""))
    print(f"{len(cases)} cases ({', '.join(f'{n} {kind}' for kind, n in sorted(kinds.items()))}) in "
          f"{len({place for _, place in results})} places: {counts['ok']} as promised, {counts['known']} known not to hold, "
          f"{counts['fail']} failed, {len(skipped)} places skipped, {seconds:.0f} s")
    return counts["fail"]


def listing(cases):
    for case in cases:
        kinds = sorted({case.kind(mode) for mode in case.modes})
        print(f"{case.module:12} {case.name:42} {' / '.join(kinds)}{' (' + case.needs + ')' if case.needs else ''}")
        for where, reason in known.places(case.name):
            print(f"{'':12} {'':42} known in {where}: {reason}")
    print(len(cases), "cases")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", type=shlex.split, help="the binary, with a wrapper if need be; its helpers lie beside it")
    parser.add_argument("--helper", help="the built attack.c")
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1),
                        help="cases at a time; much of a call is waiting")
    parser.add_argument("--runner", choices=RUNNERS)
    parser.add_argument("--mode", choices=MODES)
    parser.add_argument("--user", choices=USERS)
    parser.add_argument("--uid", type=int, help="of the ordinary user (default: nobody's), when started by root")
    parser.add_argument("--case", action="append", help="a name, or the name of a module; may be repeated")
    parser.add_argument("--without", action="append", default=[], metavar="CASE:REASON", help="leaves a case out and says why")
    parser.add_argument("--full", action="store_true", help="every case as both users, also where that makes no difference")
    parser.add_argument("--in-turn", action="store_true",
                        help="each case in one place only, all places in turn; for slow builds")
    parser.add_argument("--baseline", action="store_true", help="unconfined")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="a line for every case")
    options = parser.parse_args()
    if not options.list:
        if not options.agent or not options.helper:
            parser.error("--agent and --helper are needed")
        options.agent[-1] = os.path.abspath(options.agent[-1])
    return options


def main():
    options = arguments()
    cases = load()
    if options.case:
        unknown = [n for n in options.case if n not in MODULES and n not in {c.name for c in cases}]
        if unknown:
            sys.exit("no such case: " + " ".join(unknown))
        cases = [c for c in cases if c.name in options.case or c.module in options.case]
    for left_out in options.without:
        name, _, reason = left_out.partition(":")
        if name not in {c.name for c in cases}:
            sys.exit("no such case: " + name)
        print(f"SKIP {name}: {reason}")
        cases = [c for c in cases if c.name != name]
    missing = sorted({c.program for c in cases if c.program and not shutil.which(c.program)})
    if missing:
        print("SKIP the cases that need " + ", ".join(missing))
        cases = [c for c in cases if c.program not in missing]
    if options.list:
        listing(cases)
        return 0
    begin = time.monotonic()
    suite = Suite(options)
    suite.simple = next(c for c in load() if c.name == "exit-code")
    try:
        return run_all(suite, cases, options, begin)
    finally:
        shutil.rmtree(suite.base, ignore_errors=True)


def run_all(suite, cases, options, begin):
    runners = ("none",) if options.baseline else (options.runner,) if options.runner else RUNNERS
    places = suite.places(runners)
    skipped = {place: why for place in places if (why := suite.impossible(place)) is not None}
    for place, why in skipped.items():
        print(f"SKIP {place}: {why}")
    places = [place for place in places if place not in skipped]
    no_runner = {p.runner for p in skipped if p.runner not in {q.runner for q in places}}
    failed = bool(os.environ.get("CI") == "true" and no_runner)
    if failed:
        print(f"FAIL under CI: {', '.join(sorted(no_runner))} does not work here")
    results = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        running = {pool.submit(suite.run_one, case, place): (case, place) for case, place in plan(cases, places, options)}
        for future in concurrent.futures.as_completed(running):
            case, place = running[future]
            verdict, text = results[case.name, place] = future.result()
            if verdict == "fail" or options.verbose:
                print(f"{'FAIL' if verdict == 'fail' else verdict} {place} {case.name} ({case.module}): {text}", flush=True)
    failed = report(cases, results, skipped, time.monotonic() - begin, options) or failed
    if not results:
        print("FAIL nothing ran: no confining runner works here")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())

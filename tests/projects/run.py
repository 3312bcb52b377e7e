#!/usr/bin/env python3
"""Does the work of a day in real projects: configure, build, test and git commit, confined and not, and compares.

  run.py --agent build/release/acp-agent [--project NAME]... [--runner bwrap|landlock]... [--user root|ordinary]...
         [--folder DIR] [--keep]

Each project is worked on in a fresh folder below /var/tmp by its owner, and by root in a folder of root's. Every step is a
call of its own (`acp-agent confine --mode workspace-write`). Confined, each step must end as it does unconfined, with the
same line about the tests, and nothing may be left outside: no process, no file in the home but the cache that the
composition lets it write. The sources are Debian's, fetched and checked by apt, and npm's; needs the network, and for the
ordinary user a root who starts it.
"""
import argparse
import collections
import dataclasses
import os
import pwd
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

COMMIT = ("commit", 'git init -q . && git config user.email a@example.org && git config user.name A && git add -A . && '
          'git commit -q -m all && git status --porcelain | wc -l && git log --oneline | wc -l && git fsck && '
          'git checkout -q -b side && echo more >> notes && git add notes && git commit -q -m more && '
          'git checkout -q - && git merge -q side && git log --format=%s')


@dataclasses.dataclass(frozen=True)
class Project:
    name: str
    packages: tuple              # Debian's, that the work needs
    source: str                  # a Debian source package, or npm:NAME@VERSION
    steps: tuple                 # (name, shell text)
    tests: str                   # a regular expression: the lines of the test step that must be the same


PROJECTS = (
    Project("sed", ("gcc", "make", "libacl1-dev", "gettext"), "sed", (
        # Three of gnulib's tests write below /var/tmp by name.
        ("configure", "sed -i s,/var/tmp,/tmp, gnulib-tests/test-*-1.sh && ./configure --quiet"),
        ("build", "make -s -j2"),
        ("test", "make -s check -j2"),
        COMMIT), r"^# [A-Z]+: +\d+$"),
    Project("tar", ("gcc", "make", "libacl1-dev", "libattr1-dev", "gettext", "autoconf", "attr", "acl"), "tar", (
        ("configure", "FORCE_UNSAFE_CONFIGURE=1 ./configure --quiet"),
        ("build", "make -s -j2"),
        ("test", "make -s check TESTSUITEFLAGS=-j2"),
        COMMIT), r"^ *\d+: .*(?:ok|skipped|FAILED).*$"),
    Project("mercurial", ("gcc", "make", "libpython3-dev", "python3-setuptools", "python3-docutils", "unzip"), "mercurial", (
        ("configure", "/usr/bin/python3 -c 'import sys; assert sys.version_info >= (3, 6)'"),
        ("build", "make -s local PYTHON=/usr/bin/python3"),
        ("test", "cd tests && /usr/bin/python3 run-tests.py -l -j2 --color never $(ls test-a*.t test-b[ail]*.t test-clone*.t "
                 "test-commit*.t test-symlink*.t test-permissions.t test-serve.t test-http.t test-merge*.t test-share*.t "
                 "test-execute-bit.t test-hook.t test-rename*.t test-lock*.py test-lock.t test-flags.t test-umask*.t "
                 "test-inotify*.t test-fsmonitor*.t test-pager*.t test-ssh*.t test-casefolding.t 2>/dev/null)"),
        COMMIT), r"^(?:# Ran .*|Failed .*|Skipped .*|ERROR: .*)$"),
    Project("minimist", (), "npm:minimist@1.2.8", (
        ("configure", "npm install --ignore-scripts --no-audit --no-fund --loglevel=error"),
        ("build", "node -e 'require(\"./index.js\")([])'"),
        ("test", "HOME=/tmp npm run tests-only"),  # nyc writes shims into the home
        COMMIT), r"^# (?:tests|pass|fail|ok).*$"),
)

COMPOSITION_KEY = 'writable: ["~/.npm"]'


class Failed(Exception):
    pass


def checked(argv, **more):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)
    if done.returncode != 0:
        raise Failed(f"{shlex.join(argv)}: exit code {done.returncode}\n{done.stdout[-2000:]}")
    return done.stdout


class Sources:
    """What is worked on, unpacked once."""

    def __init__(self, folder):
        self.folder = folder
        self.ready = set()
        self.apt = None

    def options(self):
        """apt, told of nothing but Debian's own source packages, by the mirror that this host is set up with."""
        if self.apt is None:
            said = checked(["apt-get", "indextargets", "--format", "$(ORIGIN) $(RELEASE) $(COMPONENT) $(REPO_URI)",
                            "Created-By: Packages"])
            found = [line.split() for line in said.splitlines() if line.startswith("Debian ")]
            found = sorted({(uri, release) for _, release, component, uri in found if component == "main" and "security" not in uri})
            if not found:
                raise Failed("apt knows no Debian mirror")
            lists = os.path.join(self.folder, "lists")
            os.makedirs(os.path.join(lists, "partial"), exist_ok=True)
            with open(os.path.join(self.folder, "sources.list"), "w", encoding="utf-8") as file:
                for uri, release in found:
                    file.write(f"deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {uri} {release} main\n")
            self.apt = ["apt-get", "-qq", "-o", f"Dir::Etc::sourcelist={self.folder}/sources.list", "-o",
                        "Dir::Etc::sourceparts=/dev/null", "-o", f"Dir::State::Lists={lists}", "-o",
                        "APT::Sandbox::User=root", "-o", "Acquire::Retries=3"]
            checked(self.apt + ["update"])
        return self.apt

    def of(self, project):
        place = os.path.join(self.folder, project.name)
        if project.name not in self.ready:
            shutil.rmtree(place, ignore_errors=True)
            os.makedirs(place)
            if project.source.startswith("npm:"):
                name = checked(["npm", "pack", "--silent", project.source[4:]], cwd=place).strip().splitlines()[-1]
                checked(["tar", "-xzf", name, "--strip-components=1"], cwd=place)
                os.remove(os.path.join(place, name))
            else:
                checked(self.options() + ["source", "--download-only", project.source], cwd=place)
                original = next(n for n in os.listdir(place) if ".orig.tar." in n and not n.endswith(".asc"))
                checked(["tar", "-xf", original, "--strip-components=1"], cwd=place)
                for name in os.listdir(place):
                    if name.startswith(project.source + "_"):
                        os.remove(os.path.join(place, name))
            self.ready.add(project.name)
        return place


@dataclasses.dataclass
class Work:
    """One project, worked on once."""
    options: object
    project: Project
    runner: str                  # none: unconfined
    user: str
    folder: str
    seconds: dict = dataclasses.field(default_factory=dict)

    def as_user(self):
        if self.user == "ordinary" and os.getuid() == 0:
            uid = pwd.getpwnam("nobody").pw_uid
            return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
        return []

    def prepare(self, source):
        self.workspace, self.home = self.folder + "/ws", self.folder + "/home"
        os.makedirs(self.home + "/.npm")
        checked(["cp", "-a", source, self.workspace])
        if os.getuid() == 0:
            owner = "nobody:nogroup" if self.user == "ordinary" else "root:root"
            checked(["chown", "-R", owner, self.folder])
        self.before = self.outside()

    def outside(self):
        """Everything below the home but the caches a user lets a package manager write."""
        return {os.path.join(at, name) for at, folders, files in os.walk(self.home) for name in folders + files
                if not os.path.join(at, name).startswith(self.home + "/.npm/")}

    def environment(self):
        return {"PATH": os.environ["PATH"] if self.project.source.startswith("npm:") else "/usr/bin:/bin:/usr/sbin:/sbin",
                "HOME": self.home, "LANG": "C.UTF-8", "XDG_STATE_HOME": self.folder + "/state", "PROJECT_WORK": self.folder,
                "NPM_CONFIG_REGISTRY": self.options.registry}

    def step(self, name, text):
        argv = ["bash", "-c", text]
        if self.runner != "none":
            argv = [self.options.agent, "--config", self.options.config, "confine", "--mode", "workspace-write", "--runner",
                    self.runner, "--root", self.workspace, "--"] + argv
        start = time.monotonic()
        with open(f"{self.folder}/{name}.log", "w+", encoding="utf-8", errors="replace") as log:
            child = subprocess.Popen(self.as_user() + argv, cwd=self.workspace, env=self.environment(), stdin=subprocess.DEVNULL,
                                     stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
            try:
                code = child.wait(timeout=self.options.limit)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                code = "no end"
            log.seek(0)
            output = log.read()
        self.seconds[name] = time.monotonic() - start
        lines = []
        if name == "test":
            lines = sorted(set(re.sub(r"\d+\.\d+s|[\d.]+ seconds", "", line.strip())
                               for line in re.findall(self.project.tests, output, re.M)))
        if name == "commit":
            lines = re.sub(r"\b[0-9a-f]{7,40}\b", "", output).splitlines()
        return code, lines

    def left_over(self):
        """What is there afterwards that unconfined work would not have left either."""
        found = sorted(self.outside() - self.before)
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if f"PROJECT_WORK={self.folder}\0".encode() in file.read():
                        found.append("process " + pid)
            except OSError:
                pass
        return found

    def all_steps(self):
        results = collections.OrderedDict()
        for name, text in self.project.steps:
            results[name] = self.step(name, text)
            if results[name][0] != 0 and name != "test":
                break
        return results


def compare(expected, found):
    """Step by step, what is not as it is unconfined."""
    faults = []
    for name, (code, lines) in expected.items():
        if name not in found:
            faults.append(f"{name}: not reached")
            continue
        other_code, other_lines = found[name]
        if other_code != code:
            faults.append(f"{name}: exit code {other_code}, unconfined {code}")
        faults += [f"{name}: only unconfined: {line}" for line in lines if line not in other_lines]
        faults += [f"{name}: only confined: {line}" for line in other_lines if line not in lines]
    return faults


def usable_by_all(agent, folder):
    """The agent with its helpers where an ordinary user can start it, whoever owns the build."""
    place = os.path.join(folder, "bin")
    os.makedirs(place, exist_ok=True)
    for name in ("acp-agent", "landlock-run", "call-init"):
        shutil.copy(os.path.join(os.path.dirname(agent), name), place)
        os.chmod(os.path.join(place, name), 0o755)
    return os.path.join(place, "acp-agent")


def composition(folder):
    """The shipped one, with the one key that a user of npm sets."""
    path = os.path.join(folder, "cordis.yml")
    with open(os.path.join(os.path.dirname(__file__), "../../cordis.yml"), encoding="utf-8") as file:
        text, count = re.subn(r"(?m)^( +)mode: !env.*$", rf"\g<0>\n\1{COMPOSITION_KEY}", file.read(), count=1)
    if count != 1:
        raise Failed("the shipped composition has no mode to put `writable` beside")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--agent", required=True, type=os.path.abspath)
    parser.add_argument("--project", action="append", choices=[p.name for p in PROJECTS])
    parser.add_argument("--runner", action="append", choices=("bwrap", "landlock"))
    parser.add_argument("--user", action="append", choices=("root", "ordinary"))
    parser.add_argument("--folder", help="where sources are kept between runs; default: a temporary folder below /var/tmp")
    parser.add_argument("--limit", type=float, default=1200, help="seconds one step may take")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    base = tempfile.mkdtemp(prefix="acp-projects-", dir="/var/tmp")
    os.chmod(base, 0o755)
    options.agent = usable_by_all(options.agent, base)
    options.config = composition(base)
    options.registry = checked(["npm", "config", "get", "registry"]).strip()
    sources = Sources(options.folder or base + "/sources")
    os.makedirs(sources.folder, exist_ok=True)
    users = options.user or ["root", "ordinary"]
    if os.getuid() != 0:
        print("SKIP root: not started by root")
        users = ["ordinary"]
    failed = 0
    for project in PROJECTS:
        if options.project and project.name not in options.project:
            continue
        missing = [p for p in project.packages
                   if subprocess.run(["dpkg", "-s", p], capture_output=True, check=False).returncode != 0]
        if missing:
            raise Failed(f"{project.name} needs: apt-get install {' '.join(missing)}")
        for user in users:
            expected = None
            for runner in ["none"] + (options.runner or ["bwrap", "landlock"]):
                work = Work(options, project, runner, user, f"{base}/{project.name}-{user}-{runner}")
                work.prepare(sources.of(project))
                results = work.all_steps()
                took = " ".join(f"{name} {seconds:.0f} s" for name, seconds in work.seconds.items())
                if runner == "none":
                    expected = results
                    reached = [f"{name} {code}" for name, (code, _) in results.items()]
                    faults = [] if len(results) == len(project.steps) and results["test"][1] else [
                        f"the work itself fails unconfined: {', '.join(reached)}; see {work.folder}"]
                    tested = f"; {len(results['test'][1])} lines about tests" if "test" in results else ""
                    print(f"{'FAIL' if faults else 'ok  '} {project.name} {user} unconfined: {took}{tested}", flush=True)
                else:
                    faults = compare(expected, results) + [f"left outside: {name}" for name in work.left_over()]
                    print(f"{'FAIL' if faults else 'ok  '} {project.name} {user} {runner}: {took}", flush=True)
                for fault in faults[:40]:
                    print("     " + fault)
                failed += bool(faults)
                if not faults and not options.keep and runner != "none":
                    shutil.rmtree(work.folder, ignore_errors=True)
    if failed:
        print(f"{failed} failed; logs of each step in {base}")
        return 1
    print("all as unconfined")
    if not options.keep:
        shutil.rmtree(base, ignore_errors=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as fault:
        sys.exit(str(fault))

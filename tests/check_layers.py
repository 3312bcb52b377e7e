"""Checks the house rules that a compiler does not: who may include whom, where standard output is written, where heavy
headers stand, and how long a file may be.

    check_layers.py ROOT         prints every violation, exit code 1 if there is one
    check_layers.py --self-test  breaks each rule once in a temporary tree and expects it to be reported

docs/architecture.md explains the rules. Only the standard library is used."""

import os
import re
import sys
import tempfile

MAX_LINES = 800

# Folder -> what it may include. The composition root (main.cc, plugins*) may include everything; tests and bench too.
BELOW = {
    "base": {"base"},
    "llm": {"llm", "base"},
    "sandbox": {"sandbox", "base"},
    "agent": {"agent", "llm", "sandbox", "base"},
    "tools": {"tools", "agent", "llm", "sandbox", "base"},
    "acp": {"acp", "agent", "llm", "sandbox", "base"},
    "cli": {"cli", "acp", "tools", "agent", "llm", "sandbox", "base"},
    "native": {"native"},
}
FREE = {"tests", "bench"}
ROOT = "(root)"
ASSETS_ALLOWED = {"agent", "llm", "tools", "cli", ROOT} | FREE

STDOUT_ALLOWED = {"base/line_transport.cc", "base/child.cc", "main.cc", "cli/output.cc"}
STDOUT_ALLOWED_FOLDERS = {"native"} | FREE
STDOUT = re.compile(
    r"\bstd::cout\b|\bstdout\b|\bSTDOUT_FILENO\b|\bv?printf\s*\(|\bputs\s*\(|\bputchar\s*\("
    r"|\bfmt::print(?:ln)?\s*\(\s*(?!stderr\b)|\bwrite\s*\(\s*1\s*,")

# Heavy header -> the one file it may stand in; a folder name: any one file there; "*": any one file; "per folder".
HEAVY = [
    (re.compile(r"httplib\.h$"), "llm/http.cc"),
    (re.compile(r"yaml-cpp/"), "base/config_reader.cc"),
    (re.compile(r"CLI/|CLI11"), "cli/"),
    (re.compile(r"valijson/"), "*"),
    (re.compile(r"openssl/"), "per folder"),
]

CODE = (".cc", ".h", ".c", ".hh", ".hpp", ".cpp")
COUNTED = CODE + (".py", ".sh", ".js", ".mjs", ".cjs", ".ts", ".cmake")
SKIPPED_FOLDERS = {"node_modules", "snapshots", "corpus", "build", "__pycache__"}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def is_script(path):
    """A program without an extension, such as ./dev."""
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def files_of(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith((".", "build-")) and f not in SKIPPED_FOLDERS)
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield os.path.relpath(path, root).replace(os.sep, "/")


def folder_of(path):
    return path.split("/", 1)[0] if "/" in path else ROOT


def without_text(code):
    """The code with comments and literals blanked, line numbers kept."""
    return NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), code)


def without_comments(code):
    return NOT_CODE.sub(
        lambda match: re.sub(r"[^\n]", " ", match.group(0)) if match.group(0).startswith("/") else match.group(0), code)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def check_arrow(path, line, target, known):
    """One include of one of our files, or of the generated assets.h."""
    folder = folder_of(path)
    if target == "assets.h":
        if folder not in ASSETS_ALLOWED:
            yield f"{path}:{line}: assets.h may be used in agent, llm, tools, cli and the composition root only"
        return
    if target not in known:
        yield f"{path}:{line}: no such file: {target}"
        return
    below = BELOW.get(folder)
    to = folder_of(target)
    if folder in FREE or folder == ROOT:
        if folder == ROOT and to in FREE:
            yield f"{path}:{line}: the product includes {target}"
    elif below is not None and to not in below:
        yield f"{path}:{line}: {folder}/ may not include {target}: the arrow points up or across"


def resolve(path, quoted, angled, known):
    """The file of ours that an include names, or None."""
    name = quoted or angled
    if name == "assets.h":
        return name
    beside = os.path.normpath(os.path.join(os.path.dirname(path), name)).replace(os.sep, "/")
    if name in known:
        return name
    if quoted and beside in known:
        return beside
    first = name.split("/", 1)[0]
    return name if quoted and (first in BELOW or "/" not in name) else None


def cycles(graph):
    """Each cycle between files once, as a list of files."""
    found = []
    state = {}

    def visit(node, trail):
        state[node] = "open"
        for target in graph.get(node, ()):
            if state.get(target) == "open":
                found.append(trail[trail.index(target):] + [target])
            elif target not in state:
                visit(target, trail + [target])
        state[node] = "done"

    for node in sorted(graph):
        if node not in state:
            visit(node, [node])
    return found


def check_heavy(users):
    for pattern, place in HEAVY:
        using = sorted({(path, line, name) for path, line, name in users if pattern.search(name)})
        first_in = {}
        for path, line, name in using:
            where = f"{path}:{line}: <{name}>"
            if place.endswith(".cc"):
                if path != place:
                    yield f"{where} may be included by {place} only"
                continue
            if place.endswith("/") and not path.startswith(place):
                yield f"{where} may be included in {place} only"
                continue
            if not path.endswith(".cc"):
                yield f"{where} may not be included by a header"
                continue
            scope = folder_of(path) if place == "per folder" else ""
            first = first_in.setdefault(scope, path)
            if first != path:
                yield f"{where} is included by {first} already: one file {'a folder' if scope else 'for all'}"


def check(root):
    paths = list(files_of(root))
    known = {path for path in paths if path.endswith(CODE)}
    graph, heavy_users, faults = {}, [], []
    for path in paths:
        full = os.path.join(root, path)
        if path.endswith(COUNTED) or ("." not in os.path.basename(path) and is_script(full)):
            lines = read(full).count("\n")
            if lines > MAX_LINES:
                faults.append(f"{path}: {lines} lines; the limit is {MAX_LINES}: one job a file")
        if path not in known:
            continue
        folder = folder_of(path)
        text = read(full)
        included = without_comments(text)
        for match in INCLUDE.finditer(included):
            quoted, angled = match.groups()
            line = line_of(included, match.start(1 if quoted else 2))
            name = quoted or angled
            target = resolve(path, quoted, angled, known)
            if target is not None:
                faults.extend(check_arrow(path, line, target, known))
                graph.setdefault(path, []).append(target)
            if folder in FREE:
                continue
            heavy_users.append((path, line, name))
            if name == "nlohmann/json.hpp" and not path.endswith(".cc") and path != "base/pch.h":
                faults.append(f"{path}:{line}: a header includes nlohmann/json_fwd.hpp only (through base/json.h)")
        if path not in STDOUT_ALLOWED and folder not in STDOUT_ALLOWED_FOLDERS:
            for match in STDOUT.finditer(without_text(text)):
                faults.append(f"{path}:{line_of(text, match.start())}: standard output belongs to the protocol; "
                              "it is opened by base::stdio_transport() and written by cli/output.cc")
    faults.extend("cycle: " + " -> ".join(cycle) for cycle in cycles(graph))
    faults.extend(check_heavy(heavy_users))
    return faults


# Self-test: each case is a tree and a text that must be among its faults; None: the tree is clean.
GOOD = {
    "base/a.h": "#pragma once\n",
    "base/pch.h": "#include <nlohmann/json.hpp>\n",
    "base/line_transport.cc": "int f() { return write(STDOUT_FILENO, 0, 0); }\n",
    "llm/http.cc": '#include <httplib.h>\n#include "base/a.h"\n',
    "llm/tls.cc": "#include <openssl/ssl.h>\n",
    "sandbox/hash.cc": "#include <openssl/evp.h>\n",
    "agent/c.cc": '#include "assets.h"\n#include "llm/l.h"\n// printf("x") in a comment, std::cout too\n'
                  'const char* t = "printf(\\"x\\")";\nint n = snprintf(b, 3, "x");\n',
    "llm/l.h": '#include "base/a.h"\n',
    "cli/output.cc": 'void f() { std::cout << 1; }\n',
    "main.cc": '#include "cli/x.h"\nint main() { puts("x"); }\n',
    "cli/x.h": "",
    "tests/t.cc": '#include "cli/x.h"\n#include <httplib.h>\nint f() { return printf("x"); }\n',
    "native/n.c": '#include <stdio.h>\nint main(void) { puts("x"); }\n',
}
BAD = [
    ("arrow up", {"base/b.cc": '#include "llm/l.h"\n'}, "base/b.cc:1: base/ may not include llm/l.h"),
    ("arrow across", {"llm/b.cc": '\n#include "sandbox/s.h"\n', "sandbox/s.h": ""}, "llm/b.cc:2: llm/ may not"),
    ("tools and acp", {"acp/b.cc": '#include "tools/t.h"\n', "tools/t.h": ""}, "acp/b.cc:1: acp/ may not include tools"),
    ("arrow in angles", {"base/b.cc": "#include <llm/l.h>\n"}, "base/b.cc:1: base/ may not include llm/l.h"),
    ("relative arrow", {"base/b.cc": '#include "../llm/l.h"\n'}, "base/b.cc:1: base/ may not include llm/l.h"),
    ("root from below", {"cli/b.cc": '#include "plugins.h"\n', "plugins.h": ""}, "cli/b.cc:1: cli/ may not include plugins.h"),
    ("native alone", {"native/m.c": '#include "base/a.h"\n'}, "native/m.c:1: native/ may not include base/a.h"),
    ("product uses tests", {"plugins.cc": '#include "tests/h.h"\n', "tests/h.h": ""}, "plugins.cc:1: the product includes"),
    ("assets in base", {"base/b.cc": '#include "assets.h"\n'}, "base/b.cc:1: assets.h"),
    ("missing file", {"base/b.cc": '#include "base/nowhere.h"\n'}, "base/b.cc:1: no such file: base/nowhere.h"),
    ("cycle", {"base/x.h": '#include "base/y.h"\n', "base/y.h": '#include "base/x.h"\n'},
     "cycle: base/x.h -> base/y.h -> base/x.h"),
    ("std::cout", {"acp/b.cc": "\nvoid f() { std::cout << 1; }\n"}, "acp/b.cc:2: standard output"),
    ("printf", {"acp/b.cc": 'int x = printf("x");\n'}, "acp/b.cc:1: standard output"),
    ("puts", {"tools/b.cc": 'int x = puts("x");\n'}, "tools/b.cc:1: standard output"),
    ("fwrite", {"tools/b.cc": 'int x = fwrite("x", 1, 1, stdout);\n'}, "tools/b.cc:1: standard output"),
    ("STDOUT_FILENO", {"cli/b.cc": "int x = STDOUT_FILENO;\n"}, "cli/b.cc:1: standard output"),
    ("httplib", {"llm/b.cc": "#include <httplib.h>\n"}, "llm/b.cc:1: <httplib.h> may be included by llm/http.cc only"),
    ("yaml", {"cli/b.cc": "#include <yaml-cpp/yaml.h>\n"}, "cli/b.cc:1: <yaml-cpp/yaml.h> may be included by base"),
    ("CLI11 elsewhere", {"main.cc": "#include <CLI/CLI.hpp>\n"}, "main.cc:1: <CLI/CLI.hpp> may be included in cli/"),
    ("CLI11 twice", {"cli/b.cc": "#include <CLI/CLI.hpp>\n", "cli/c.cc": "#include <CLI/CLI.hpp>\n"},
     "cli/c.cc:1: <CLI/CLI.hpp> is included by cli/b.cc already"),
    ("valijson twice", {"agent/v.cc": "#include <valijson/schema.hpp>\n", "tools/v.cc": "#include <valijson/schema.hpp>\n"},
     "tools/v.cc:1: <valijson/schema.hpp> is included by agent/v.cc already"),
    ("openssl twice in a folder", {"llm/x.cc": "#include <openssl/evp.h>\n"},
     "llm/x.cc:1: <openssl/evp.h> is included by llm/tls.cc already"),
    ("openssl in a header", {"agent/b.h": "#include <openssl/evp.h>\n"}, "agent/b.h:1: <openssl/evp.h> may not be"),
    ("json in a header", {"agent/b.h": "#include <nlohmann/json.hpp>\n"}, "agent/b.h:1: a header includes"),
    ("long source", {"tests/b.cc": "\n" * 801}, "tests/b.cc: 801 lines"),
    ("long python", {"tests/b.py": "\n" * 801}, "tests/b.py: 801 lines"),
    ("long script", {"dev": "#!/bin/sh\n" + "\n" * 800}, "dev: 801 lines"),
]


def check_tree(tree):
    with tempfile.TemporaryDirectory() as root:
        for path, text in tree.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(text)
        return check(root)


def self_test():
    failures = [f"the clean tree has faults: {fault}" for fault in check_tree(GOOD)]
    for name, change, expected in BAD:
        faults = check_tree({**GOOD, **change})
        if not any(fault.startswith(expected) for fault in faults):
            failures.append(f"{name}: expected {expected!r}, got {faults}")
        if len(faults) != 1:
            failures.append(f"{name}: one fault expected, got {faults}")
    return failures


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    faults = self_test() if arguments[0] == "--self-test" else check(arguments[0])
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Keeps the pages that name cases true: a table whose last column is "Cases" names only cases that exist (`a-*` is all that
begin so), and SECURITY.md states every declared limit in the words of known.py."""
import fnmatch
import os
import re

import known

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = ("SECURITY.md", "docs/protections.md")


def faults(names):
    found = []
    for page in PAGES:
        with open(os.path.join(SOURCE, page), encoding="utf-8") as f:
            text = f.read()
        inside = False
        for line in text.splitlines():
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
            inside = bool(cells) and (inside or cells[-1] == "Cases")
            if inside and cells[-1] != "Cases":
                found += [f"{page} names a case that does not exist: {name}" for name in re.findall(r"`([^`]+)`", cells[-1])
                          if not fnmatch.filter(names, name)]
        if page == "SECURITY.md":
            found += [f"{page} does not state a limit of known.py: {reason}" for reason in
                      sorted({entry.reason for entry in known.KNOWN if not entry.passing() and entry.reason not in text})]
    return found

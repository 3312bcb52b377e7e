"""A case's composition, derived from the shipped cordis.yml text: entries replaced, removed, or given more config.

The file is a list of entries that each begin with "- " in column 0; JSON is YAML, so a replacement is written as JSON.
"""
import json
import re


def entries(text):
    """[(plugin name or None, text)]: comments and blank lines before an entry stay with it."""
    out, current = [], []
    for line in text.splitlines():
        if re.match(r"-\s", line) and any(re.match(r"-\s", old) for old in current):
            out.append(current)
            current = []
        current.append(line)
    out.append(current)
    named = []
    for lines in out:
        match = re.search(r"^[-\s]*name:\s*['\"]?(?:@deepseek-ai/dsh-)?([A-Za-z0-9_-]+)", "\n".join(lines), re.M)
        named.append((match.group(1) if match else None, "\n".join(lines)))
    return named


def _with_config(text, config):
    lines = text.splitlines()
    for i, line in enumerate(lines):
        match = re.match(r"(\s+)config:\s*(\{\s*\})?\s*(#.*)?$", line)
        if match:
            indent = match.group(1) + "  "
            lines[i] = f"{match.group(1)}config:"
            own = [f"{indent}{key}: {json.dumps(value)}" for key, value in config.items()]
            keep = [old for old in lines[i + 1:] if not any(re.match(rf"\s+{re.escape(key)}:", old) for key in config)]
            return "\n".join(lines[:i + 1] + own + keep)
    return "\n".join(lines + ["  config:"] + [f"    {key}: {json.dumps(value)}" for key, value in config.items()])


def derive(text, edits, chain):
    """edits: plugin name -> {"config": {...}} adds or overrides keys, {"remove": true}, or {"replace": {entry}}.
    `chain` forces one runner."""
    edits = dict(edits or {})
    if chain:
        edits.setdefault("sandbox-local", {"config": {"chain": chain}})
    out, left = [], set(edits)
    for name, body in entries(text):
        edit = edits.get(name)
        if edit is None:
            out.append(body)
            continue
        left.discard(name)
        if "replace" in edit:
            out.append("- " + json.dumps(edit["replace"]))
        elif not edit.get("remove"):
            out.append(_with_config(body, edit["config"]))
    if left:
        raise ValueError(f"cordis.yml has no entry {sorted(left)}")
    return "\n".join(out) + "\n"

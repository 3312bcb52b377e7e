"""Ids, times, durations, the temporary path and the platform become names; what one runner says differently becomes a
placeholder.

Nothing else is touched. One Names object serves all goldens of a case, so that the same id has the same name in each.
"""
import json
import os
import re

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
SLUG = re.compile(r"(/sessions/[^/\s\"]*)-[0-9a-f]{8}/")   # a session's folder ends in a hash of its path
DURATION_KEYS = {"duration_ms", "delay_ms"}

# What differs by runner, and the value that is right there. Only that value is replaced: another runner's words stay in
# the text and make the golden differ.
RUNNERS = {
    "bwrap": {"denial": "Read-only file system", "backend": "bwrap", "enforcement": "full"},
    "landlock": {"denial": "Permission denied", "backend": "landlock", "enforcement": "full"},
    None: {},
}


# What the model is told of the machine.
PLATFORM = f"Platform: {os.uname().sysname} {os.uname().machine}"


class Names:
    def __init__(self, root, runner):
        self.root, self.ids = root, {}
        self.runner = RUNNERS[runner]

    def text(self, text):
        text = text.replace(self.root, "{tmp}").replace(os.path.basename(self.root), "{unique}")
        text = SLUG.sub(r"\1-{hash}/", text)
        text = text.replace(PLATFORM, "Platform: {platform}")
        text = UUID.sub(lambda m: self.ids.setdefault(m.group(0), f"{{id:{len(self.ids) + 1}}}"), text)
        text = TIME.sub("{time}", text)
        if "denial" in self.runner:
            text = text.replace(self.runner["denial"], "{denial}")
        if "enforcement" in self.runner and text == self.runner["enforcement"]:
            text = "{enforcement}"
        if "backend" in self.runner and text == self.runner["backend"]:
            text = "{backend}"
        return text

    def value(self, value, key=None):
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {self.text(k): self.value(v, k) for k, v in value.items()}
        if key in DURATION_KEYS and isinstance(value, (int, float)) and not isinstance(value, bool):
            return "{duration}"
        return value

    def lines(self, values):
        """One JSON text a line, in the members' own order."""
        return "".join(json.dumps(self.value(v), ensure_ascii=False) + "\n" for v in values)

"""Ids, times, durations and the temporary path become names; what one runner says differently becomes a placeholder.

Nothing else is touched. One Names object serves all goldens of a case, so that the same id has the same name in each.
"""
import json
import re

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
DURATION_KEYS = {"duration_ms", "delay_ms"}

# What differs by runner, and the value that is right there. Only that value is replaced: another runner's words stay in
# the text and make the golden differ.
RUNNERS = {
    "bwrap": {"denial": "Read-only file system", "backend": "bwrap", "enforcement": "full"},
    "landlock": {"denial": "Permission denied", "backend": "landlock",
                 "enforcement": "partial (metadata changes not covered)"},
    None: {},
}


class Names:
    def __init__(self, root, runner, lines_of_runner=True):
        self.root, self.ids = root, {}
        self.runner = RUNNERS[runner] if lines_of_runner else {}

    def text(self, text):
        text = text.replace(self.root.rsplit("/", 1)[1], "{unique}") if self.root not in text else \
            text.replace(self.root, "{tmp}").replace(self.root.rsplit("/", 1)[1], "{unique}")
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

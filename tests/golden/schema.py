"""JSON Schema of the protocol, method by method.

The schema's root accepts nearly everything (its unions hold "any"), so each message is checked against the definition of
its own method, found through x-method and x-side. Definitions are open, so unknown keys outside _meta are reported too:
a misspelt optional field would pass otherwise.
"""
import json

import jsonschema

UPDATE_DEFS = {
    "user_message_chunk": "ContentChunk", "agent_message_chunk": "ContentChunk", "agent_thought_chunk": "ContentChunk",
    "tool_call": "ToolCall", "tool_call_update": "ToolCallUpdate", "plan": "Plan",
    "available_commands_update": "AvailableCommandsUpdate", "current_mode_update": "CurrentModeUpdate",
    "config_option_update": "ConfigOptionUpdate", "session_info_update": "SessionInfoUpdate",
    "usage_update": "UsageUpdate",
}


class Schema:
    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            self.root = json.load(f)
        self.defs = self.root["$defs"]
        self.methods = {}            # (receiver, method, "Request" | "Response" | "Notification") -> definition name
        for name, body in self.defs.items():
            if "x-method" in body:
                for kind in ("Request", "Response", "Notification"):
                    if name.endswith(kind):
                        self.methods[(body["x-side"], body["x-method"], kind)] = name
        self.validators = {}

    def definition(self, receiver, method, kind):
        return self.methods.get((receiver, method, kind)) or self.methods.get(("protocol", method, kind))

    def _validator(self, schema):
        key = json.dumps(schema, sort_keys=True)
        if key not in self.validators:
            body = dict(schema)
            body["$defs"] = self.defs
            self.validators[key] = jsonschema.Draft202012Validator(body)
        return self.validators[key]

    def check(self, name, value):
        """Everything wrong with `value` as definition `name`, as text."""
        if name == "SessionNotification" and isinstance(value, dict) and isinstance(value.get("update"), dict):
            # The union of updates gives unreadable errors: pick the member first.
            kind = value["update"].get("sessionUpdate")
            if kind not in UPDATE_DEFS:
                return [f"unknown sessionUpdate {kind!r}"]
            faults = self._errors({"$ref": f"#/$defs/{UPDATE_DEFS[kind]}"}, value["update"], lint=False)
            if faults:
                return faults
        return self._errors({"$ref": f"#/$defs/{name}"}, value)

    def _errors(self, schema, value, lint=True):
        faults = []
        for error in self._validator(schema).iter_errors(value):
            where = "/".join(str(p) for p in error.absolute_path)
            faults.append(f"{where or '(top)'}: {error.message[:300]}")
        if not faults and lint:
            self._unknown(schema, value, "", faults)
        return faults

    def _parts(self, schema, value):
        """`schema` and every part of it that applies to `value` (references, all of, the matching one of)."""
        todo, out = [schema], []
        while todo:
            part = todo.pop()
            if not isinstance(part, dict):
                continue
            out.append(part)
            if "$ref" in part:
                todo.append(self.defs[part["$ref"].rsplit("/", 1)[1]])
            todo.extend(part.get("allOf", []))
            for union in ("oneOf", "anyOf"):
                todo.extend(branch for branch in part.get(union, []) if self._validator(branch).is_valid(value))
        return out

    def _unknown(self, schema, value, where, faults):
        parts = self._parts(schema, value)
        if isinstance(value, list):
            for part in parts:
                if isinstance(part.get("items"), dict):
                    for i, item in enumerate(value):
                        self._unknown(part["items"], item, f"{where}/{i}", faults)
            return
        if not isinstance(value, dict):
            return
        known = {}
        for part in parts:
            known.update(part.get("properties", {}))
        if not known or any(part.get("additionalProperties") not in (None, False) for part in parts):
            return                   # free form: rawInput, _meta
        for key, item in value.items():
            if key == "_meta":
                continue
            if key not in known:
                faults.append(f"{where}/{key}: not a member that the protocol knows")
            else:
                self._unknown(known[key], item, f"{where}/{key}", faults)

"""What is known not to hold, in which places, and why; SECURITY.md names each reason.

An entry is inverted, not skipped: when the promise begins to hold there, the case fails until its name is removed here.
A reason that begins with "TO FIX:" is a defect, any other a declared limit.
"""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Known:
    reason: str
    cases: tuple
    runner: str = ""      # empty: any
    mode: str = ""
    user: str = ""

    def where(self):
        return "/".join(part or "any" for part in (self.runner, self.mode, self.user))

    def at(self, place):
        return all(mine in ("", theirs) for mine, theirs in
                   ((self.runner, place.runner), (self.mode, place.mode), (self.user, place.user)))


KNOWN = (
)


def reason(name, place):
    return next((entry.reason for entry in KNOWN if name in entry.cases and entry.at(place)), None)


def places(name):
    return [(entry.where(), entry.reason) for entry in KNOWN if name in entry.cases]


def faults(names):
    return [f"known.py names a case that does not exist: {case}" for entry in KNOWN for case in entry.cases
            if case not in names]

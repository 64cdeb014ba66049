"""The report of a script: one line per case."""

import re
from dataclasses import dataclass, field

SHOWN_ERRORS = 15
VARIABLE_PARTS = re.compile(r"\b(resp|msg|rs|fc|worker)_\w+|\d+")
"""Ids and numbers, in which errors of one kind differ."""


@dataclass(slots=True)
class Case:
    """One experiment: what was done and measured, and its errors."""

    name: str
    figures: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def check(self, condition: bool, error: str) -> None:
        """Record an error unless the condition holds."""
        if not condition:
            self.errors.append(error)

    def __str__(self) -> str:
        kinds: dict[str, list[str]] = {}
        for error in self.errors:
            kinds.setdefault(VARIABLE_PARTS.sub("", error), []).append(error)
        lines = [f"{self.name}: {', '.join(self.figures)}: {'WRONG' if kinds else 'good'}"]
        lines += [
            f"    {errors[0]}" + (f" (and {len(errors) - 1} like it)" if len(errors) > 1 else "")
            for errors in list(kinds.values())[:SHOWN_ERRORS]
        ]
        if len(kinds) > SHOWN_ERRORS:
            lines.append(f"    and errors of {len(kinds) - SHOWN_ERRORS} other kinds")
        return "\n".join(lines)

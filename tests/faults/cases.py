"""What a script reports: a line a case."""

import re
from dataclasses import dataclass, field

SHOWN_FAULTS = 15
PARTICULAR = re.compile(r"\b(resp|msg|rs|fc|worker)_\w+|\d+")
"""What differs between faults of one kind."""


@dataclass(slots=True)
class Case:
    """One thing that was tried: what was done and seen, and what was wrong with it."""

    name: str
    figures: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def check(self, good: bool, fault: str) -> None:
        """Note a fault unless all is good."""
        if not good:
            self.faults.append(fault)

    def __str__(self) -> str:
        kinds: dict[str, list[str]] = {}
        for fault in self.faults:
            kinds.setdefault(PARTICULAR.sub("", fault), []).append(fault)
        lines = [f"{self.name}: {', '.join(self.figures)}: {'WRONG' if kinds else 'good'}"]
        lines += [
            f"    {found[0]}" + (f" (and {len(found) - 1} like it)" if len(found) > 1 else "")
            for found in list(kinds.values())[:SHOWN_FAULTS]
        ]
        if len(kinds) > SHOWN_FAULTS:
            lines.append(f"    and faults of {len(kinds) - SHOWN_FAULTS} other kinds")
        return "\n".join(lines)

"""The worst of all measurements, by each measure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from .measure import Measured

SHOWN = 5
NOTICEABLE = 0.1
MEASURES: dict[str, Callable[[Measured], float]] = {
    "stall of /healthz": lambda one: one.stall,
    "memory at most": lambda one: one.peak,
    "memory that stayed": lambda one: one.left,
    "time": lambda one: one.seconds,
    "slope": lambda one: one.slope if one.seconds > NOTICEABLE else 0.0,
}


def report(measured: Sequence[Measured]) -> str:
    """The worst five of each measure, and all that broke a rule."""
    lines = []
    for name, figure in MEASURES.items():
        lines.append(f"the worst by {name}:")
        lines += [f"  {one}" for one in worst(measured, figure)]
    wrong = [one for one in measured if one.faults]
    lines.append(f"{len(measured)} measurements, {len(wrong)} broke a rule" + (":" if wrong else "."))
    for one in wrong:
        lines += [f"  {one}", f"    {'; '.join(one.faults)}", *([f"    {one.words}"] if one.status >= 500 else [])]
    return "\n".join(lines)


def worst(measured: Iterable[Measured], figure: Callable[[Measured], float]) -> list[Measured]:
    """One of each name."""
    by_name: dict[str, Measured] = {}
    for one in sorted(measured, key=figure):
        by_name[one.name] = one
    return sorted(by_name.values(), key=figure, reverse=True)[:SHOWN]


def write_json(measured: Iterable[Measured], path: Path) -> None:
    """All figures, for other programs."""
    path.write_text(json.dumps([asdict(one) for one in measured], indent=1, ensure_ascii=False))

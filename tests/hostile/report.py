"""A report with the worst measurements."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from .measure import Measurement

SHOWN = 5
NOTICEABLE = 0.1
MEASURES: dict[str, Callable[[Measurement], float]] = {
    "stall of /healthz": lambda measurement: measurement.stall,
    "peak of memory": lambda measurement: measurement.peak,
    "remaining memory": lambda measurement: measurement.remaining,
    "time": lambda measurement: measurement.seconds,
    "slope": lambda measurement: measurement.slope if measurement.seconds > NOTICEABLE else 0.0,
}


def report(measurements: Sequence[Measurement]) -> str:
    """The worst five by each measure, and all that violated a rule."""
    lines = []
    for name, measure in MEASURES.items():
        lines.append(f"the worst by {name}:")
        lines += [f"  {measurement}" for measurement in worst(measurements, measure)]
    violating = [measurement for measurement in measurements if measurement.violations]
    lines.append(f"{len(measurements)} measurements, {len(violating)} violated a rule" + (":" if violating else "."))
    for measurement in violating:
        lines += [
            f"  {measurement}",
            f"    {'; '.join(measurement.violations)}",
            *([f"    {measurement.text}"] if measurement.status >= 500 else []),
        ]
    return "\n".join(lines)


def worst(measurements: Iterable[Measurement], measure: Callable[[Measurement], float]) -> list[Measurement]:
    """The worst measurements, one per name."""
    by_name: dict[str, Measurement] = {}
    for measurement in sorted(measurements, key=measure):
        by_name[measurement.name] = measurement
    return sorted(by_name.values(), key=measure, reverse=True)[:SHOWN]


def write_json(measurements: Iterable[Measurement], path: Path) -> None:
    """Write all measurements, for other programs."""
    path.write_text(json.dumps([asdict(measurement) for measurement in measurements], indent=1, ensure_ascii=False))

"""The figures of a run: printed as they come, and kept in a JSON file beside those of earlier runs."""

import datetime
import json
import os
import platform
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

DISTRIBUTIONS = ("mlx", "mlx-lm", "llguidance", "Django")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured value, and the limit that it is held to, if there is one."""

    title: str
    value: float
    unit: str = ""
    """Empty for a ratio."""
    at_least: float | None = None
    at_most: float | None = None

    @property
    def is_good(self) -> bool | None:
        """Whether it is within its limit; None without one."""
        if self.at_least is not None:
            return self.value >= self.at_least
        return None if self.at_most is None else self.value <= self.at_most

    @property
    def limit(self) -> str:
        """The limit for people."""
        if self.at_least is not None:
            return f"≥ {self.at_least:g}"
        return "" if self.at_most is None else f"≤ {self.at_most:g}"

    def __str__(self) -> str:
        verdict = {None: "", True: f" ({self.limit}: good)", False: f" ({self.limit}: MISSED)"}[self.is_good]
        return f"{self.title}: {shown(self.value)}{self.unit and ' ' + self.unit}{verdict}"


def shown(value: float) -> str:
    """A number with three digits that count."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


@dataclass(kw_only=True)
class Report:
    """Figures by a key such as `tiny/embedded/8/ratio`; a later run replaces those that it measures again."""

    path: Path
    figures: dict[str, Figure] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    """The single values behind the figures, by the first parts of the key."""
    machine: dict[str, Any] = field(default_factory=dict)
    """Where the latest figure was measured."""
    measured: str = ""
    """The day of that."""
    missed: list[str] = field(default_factory=list)
    """Keys of figures of this run that are beyond their limits."""

    @classmethod
    def read(cls, path: Path) -> "Report":
        """What an earlier run has left, if there was one."""
        report = cls(path=path)
        if path.exists():
            kept = json.loads(path.read_text(encoding="utf-8"))
            report.figures = {key: Figure(**value) for key, value in kept["figures"].items()}
            report.details = kept["details"]
            report.machine, report.measured = kept["machine"], kept["measured"]
        return report

    def note(self, key: str, figure: Figure) -> None:
        """Keep a figure and print it."""
        self.machine, self.measured = this_machine(), datetime.datetime.now(datetime.UTC).date().isoformat()
        self.figures[key] = figure
        if figure.is_good is False:
            self.missed.append(key)
        print(figure, flush=True)

    def note_details(self, key: str, values: Any) -> None:
        """Keep what a figure was made of."""
        self.details[key] = values

    def write(self, path: Path | None = None) -> None:
        """Write the file, or another one."""
        path = path or self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "machine": self.machine,
            "measured": self.measured,
            "figures": {key: asdict(figure) for key, figure in sorted(self.figures.items())},
            "details": dict(sorted(self.details.items())),
        }
        path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def this_machine() -> dict[str, Any]:
    """What the figures depend on."""
    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
        "libraries": {name: metadata.version(name) for name in DISTRIBUTIONS},
    }

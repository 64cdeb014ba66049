"""The figures of a run: printed one by one, and stored in a JSON file with those of earlier runs."""

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
    """A measured value and its limit, if it has one."""

    title: str
    value: float
    unit: str = ""
    """Empty for a ratio."""
    at_least: float | None = None
    at_most: float | None = None

    @property
    def is_within_limit(self) -> bool | None:
        """Whether it is within its limit; None without one."""
        if self.at_least is not None:
            return self.value >= self.at_least
        return None if self.at_most is None else self.value <= self.at_most

    @property
    def limit(self) -> str:
        """The limit as text."""
        if self.at_least is not None:
            return f"≥ {self.at_least:g}"
        return "" if self.at_most is None else f"≤ {self.at_most:g}"

    def __str__(self) -> str:
        verdict = {None: "", True: f" ({self.limit}: good)", False: f" ({self.limit}: MISSED)"}[self.is_within_limit]
        return f"{self.title}: {format_number(self.value)}{self.unit and ' ' + self.unit}{verdict}"


def format_number(value: float) -> str:
    """A number with three significant digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


@dataclass(kw_only=True)
class Report:
    """Figures by keys such as `tiny/embedded/8/ratio`. A later run replaces those that it measures."""

    path: Path
    figures: dict[str, Figure] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    """The single values of the figures, by the first parts of their keys."""
    machine: dict[str, Any] = field(default_factory=dict)
    """The machine of the latest figure."""
    measured: str = ""
    """The date of the latest figure."""
    missed: list[str] = field(default_factory=list)
    """The keys of figures of this run that missed their limits."""

    @classmethod
    def read(cls, path: Path) -> "Report":
        """Read the report of an earlier run; an empty one if there is no file."""
        report = cls(path=path)
        if path.exists():
            stored = json.loads(path.read_text(encoding="utf-8"))
            report.figures = {key: Figure(**value) for key, value in stored["figures"].items()}
            report.details = stored["details"]
            report.machine, report.measured = stored["machine"], stored["measured"]
        return report

    def add(self, key: str, figure: Figure) -> None:
        """Store a figure and print it."""
        self.machine, self.measured = this_machine(), datetime.datetime.now(datetime.UTC).date().isoformat()
        self.figures[key] = figure
        if figure.is_within_limit is False:
            self.missed.append(key)
        print(figure, flush=True)

    def add_details(self, key: str, values: Any) -> None:
        """Store the single values of a figure."""
        self.details[key] = values

    def write(self, path: Path | None = None) -> None:
        """Write the report to its file, or to another one."""
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
    """The properties of this machine on which figures depend."""
    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
        "libraries": {name: metadata.version(name) for name in DISTRIBUTIONS},
    }

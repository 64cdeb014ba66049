"""docs/performance.md: its table and chart are generated from the published figures."""

import re
from pathlib import Path

from responses_site.setting_kinds import BASE_DIR

from .chart import draw
from .report import Figure, Report, format_number

PAGE = BASE_DIR / "docs" / "performance.md"
FIGURES = BASE_DIR / "docs" / "performance.json"
PICTURE = BASE_DIR / "docs" / "images" / "performance.svg"
BEGIN = "<!-- Made by `make bench ARGS=--publish`: change nothing from here to the end of the table. -->"
END = "<!-- The end of the table. -->"


def publish(report: Report) -> None:
    """Write the figures, chart and table of a run into the documentation."""
    report.write(FIGURES)
    for path, text in documents().items():
        path.write_text(text, encoding="utf-8")


def documents() -> dict[Path, str]:
    """The contents of the files that are generated from the published figures."""
    report = Report.read(FIGURES)
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    return {PAGE: f"{before}{BEGIN}\n\n{table(report)}\n{END}{after}", PICTURE: draw(report.figures)}


def table(report: Report) -> str:
    """A table of the figures that are ratios or have limits, and a line about the machine."""
    machine = report.machine
    libraries = ", ".join(f"{name} {version}" for name, version in machine["libraries"].items())
    machine_name = (
        f"{machine['system']} on {machine['processor']}, {machine['cores']} cores, Python {machine['python']}"
    )
    lines = [
        f"{machine_name}, {libraries}; measured on {report.measured}.",
        "",
        "| what | measured | limit | |",
        "|---|---|---|---|",
    ]
    for figure in sorted(report.figures.values(), key=by_number):
        if figure.unit and figure.is_within_limit is None:
            continue
        verdict = {True: "within", False: "**beyond**", None: ""}[figure.is_within_limit]
        value = f"{format_number(figure.value)} {figure.unit}".rstrip()
        lines.append(f"| {figure.title} | {value} | {figure.limit} | {verdict} |")
    return "\n".join([*lines, ""])


def by_number(figure: Figure) -> list[tuple[int, str]]:
    """A sort key of titles: 8 streams come before 32."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", figure.title)]

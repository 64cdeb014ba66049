"""A chart of the figures as SVG, for light and dark pages."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from .measures import default_model, tiny
from .report import Figure

WIDTH, PANEL_HEIGHT, GAP = 760, 240, 70
LEFT, RIGHT, TOP = 60, 20, 70
_COLOURS = ("#8c959f", "#2f6feb", "#d1783c", "#3a9d5d", "#8957e5", "#bf3989")
_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 15px }
.value { font-size: 11px }
.axis { stroke: #d1d9e0 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .axis { stroke: #3d444d } }
"""


class Panel(NamedTuple):
    """A bar chart with groups of bars."""

    title: str
    groups: Sequence[str]
    bars: Mapping[str, Sequence[float | None]]
    """The values of the groups, by name; None for a missing value."""
    line: float | None = None
    """A limit, drawn as a horizontal line."""


def draw(figures: Mapping[str, Figure]) -> str:
    """The chart of the measured figures. Panels without figures are omitted."""
    panels = [panel for panel in (_default_model(figures), _tiny(figures)) if panel.bars]
    height = len(panels) * (TOP + PANEL_HEIGHT + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>Tokens and steps a second at several numbers of streams</title>",
        f"<style>{_STYLE}</style>",
    ]
    for number, panel in enumerate(panels):
        parts += _panel(panel, number * (TOP + PANEL_HEIGHT + GAP))
    return "\n".join([*parts, "</svg>", ""])


def _default_model(figures: Mapping[str, Figure]) -> Panel:
    names = {key.split("/")[1] for key in figures if key.startswith("default/") and key.endswith("/rate")}
    first = [name for name in ("bare", "ours") if name in names]
    levels = [level for level in default_model.LEVELS if f"default/bare/{level}/rate" in figures]
    return Panel(
        "Default model: tokens a second of all streams",
        [tiny.stream_count(level) for level in levels],
        {
            name: [_value(figures, f"default/{name}/{level}/rate") for level in levels]
            for name in [*first, *sorted(names - set(first))]
        },
    )


def _tiny(figures: Mapping[str, Figure]) -> Panel:
    return Panel(
        "Tiny model: steps a second, of those of a bare generator",
        [tiny.stream_count(level) for level in tiny.LEVELS],
        {
            name: values
            for name in ("engine", "embedded", "team")
            if any(values := [_value(figures, f"tiny/{name}/{level}/ratio") for level in tiny.LEVELS])
        },
        line=tiny.MIN_RATIO,
    )


def _value(figures: Mapping[str, Figure], key: str) -> float | None:
    return figures[key].value if key in figures else None


def _panel(panel: Panel, top: float) -> list[str]:
    highest = 1.1 * max([value for values in panel.bars.values() for value in values if value is not None])
    bottom = top + TOP + PANEL_HEIGHT
    parts = [f'<text class="title" x="{LEFT}" y="{top + 24}">{escape(panel.title)}</text>']
    for number, name in enumerate(panel.bars):
        x = LEFT + 150 * number
        parts.append(f'<rect x="{x}" y="{top + 38}" width="12" height="12" fill="{_COLOURS[number]}"/>')
        parts.append(f'<text x="{x + 18}" y="{top + 49}">{escape(name)}</text>')
    group_width = (WIDTH - LEFT - RIGHT) / len(panel.groups)
    bar_width = 0.8 * group_width / len(panel.bars)
    for index, group in enumerate(panel.groups):
        begin = LEFT + index * group_width
        middle = begin + 0.4 * group_width
        parts.append(f'<text x="{middle:.1f}" y="{bottom + 20}" text-anchor="middle">{escape(group)}</text>')
        for number, values in enumerate(panel.bars.values()):
            if (value := values[index]) is not None:
                parts += _bar(begin + number * bar_width, bottom, bar_width, value, highest, _COLOURS[number])
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{bottom}" y2="{bottom}"/>')
    if panel.line is not None:
        y = bottom - panel.line / highest * PANEL_HEIGHT
        parts.append(
            f'<line class="axis" stroke-dasharray="4 3" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{panel.line:g}</text>')
    return parts


def _bar(x: float, bottom: float, width: float, value: float, highest: float, colour: str) -> list[str]:
    height = value / highest * PANEL_HEIGHT
    top, middle = bottom - height, x + width / 2 - 1
    shown = f"{value:.0f}" if value >= 10 else f"{value:.2f}"
    return [
        f'<rect x="{x:.1f}" y="{top:.1f}" width="{width - 2:.1f}" height="{height:.1f}" fill="{colour}"/>',
        f'<text class="value" x="{middle:.1f}" y="{top - 4:.1f}" text-anchor="middle">{shown}</text>',
    ]

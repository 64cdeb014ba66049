"""Figures are stored, compared with their limits and written into the documentation."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.perf import chart, document
from tests.perf.report import Figure, Report


def test_a_later_run_replaces_its_figures_and_keeps_the_others(tmp_path: Path) -> None:
    """So that a long run can be divided into parts."""
    first = Report.read(tmp_path / "kept" / "figures.json")
    first.add("a", Figure(title="A", value=1.0, at_least=2.0))
    first.add("b", Figure(title="B", value=2.0))
    first.write()
    assert first.missed == ["a"]
    second = Report.read(first.path)
    second.add("a", Figure(title="A", value=3.0, at_least=2.0))
    second.write()
    assert second.missed == []
    stored = Report.read(first.path)
    assert {key: figure.value for key, figure in stored.figures.items()} == {"a": 3.0, "b": 2.0}
    assert stored.machine["cores"] > 0


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (Figure(title="A", value=0.912345, at_least=0.9), "A: 0.912 (≥ 0.9: good)"),
        (Figure(title="A", value=1234.5, unit="ms", at_most=1000), "A: 1,234 ms (≤ 1000: MISSED)"),
        (Figure(title="A", value=1.0), "A: 1"),
    ],
)
def test_a_figure_says_whether_it_is_within_its_limit(figure: Figure, text: str) -> None:
    """In one line."""
    assert str(figure) == text


def test_the_chart_is_well_formed_for_any_figures() -> None:
    """Missing figures are omitted."""
    figures = {
        "default/bare/1/rate": Figure(title="", value=17.0, unit="tokens a second"),
        "default/ours/1/rate": Figure(title="", value=16.0, unit="tokens a second"),
        "tiny/embedded/8/ratio": Figure(title="", value=0.8),
    }
    for subset in ({}, dict(list(figures.items())[:2]), figures):
        picture = ElementTree.fromstring(chart.draw(subset))
        assert sum("height" in bar.attrib and bar.attrib["height"] != "12" for bar in picture.iter()) == len(subset)


def test_the_published_page_and_chart_match_the_published_figures() -> None:
    """The table and the figures are not edited separately."""
    for path, text in document.documents().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is not in sync: make bench ARGS=--publish"

"""Figures are kept and held to their limits."""

from pathlib import Path

import pytest

from tests.perf.report import Figure, Report


def test_a_later_run_replaces_what_it_measures_and_leaves_the_rest(tmp_path: Path) -> None:
    """So that a long run can be made in parts."""
    first = Report.read(tmp_path / "kept" / "figures.json")
    first.note("a", Figure(title="A", value=1.0, at_least=2.0))
    first.note("b", Figure(title="B", value=2.0))
    first.write()
    assert first.missed == ["a"]
    second = Report.read(first.path)
    second.note("a", Figure(title="A", value=3.0, at_least=2.0))
    second.write()
    assert second.missed == []
    kept = Report.read(first.path)
    assert {key: figure.value for key, figure in kept.figures.items()} == {"a": 3.0, "b": 2.0}
    assert kept.machine["cores"] > 0


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

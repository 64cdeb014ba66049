"""A turn costs the same at any length of the history."""

import json
from pathlib import Path

import pytest

from tests.perf.chain import run_chain
from tests.processes import run_python

TURNS = 40


@pytest.mark.django_db
def test_a_turn_writes_its_own_rows_only() -> None:
    """On SQLite: the same rows and statements at turn 10, at the end and at a branch; one query reads the history."""
    result = run_chain(TURNS)
    assert result.is_constant, result
    assert result.late_rows == {"Response": 1, "Turn": 1, "TurnItem": 2, "Item": 2, "UsageRecord": 1}


def test_a_turn_writes_its_own_rows_only_on_postgresql(postgres_url: str, tmp_path: Path) -> None:
    """The same on PostgreSQL."""
    done = run_python(
        "-m",
        "tests.perf.chain",
        "--turns",
        str(TURNS),
        data_dir=tmp_path,
        DATABASE_URL=postgres_url,
        RESPONSES_ENGINE="scripted",
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["database"] == "postgresql"
    assert result["is_constant"], result

"""Runs `tests.faults.statements` on both databases."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from responses_site.setting_kinds import BASE_DIR
from tests.faults.cases import Case
from tests.live.server import embedded
from tests.services import find_postgres, fresh_database


def run_statements(directory: Path, *, jobs: int, seed: int) -> Iterator[Case]:
    """One case per database."""
    directory.mkdir(parents=True, exist_ok=True)
    yield _run(directory)
    server = find_postgres()
    if server is not None:
        with fresh_database(server) as url:
            yield _run(directory, DATABASE_URL=url)


def _run(directory: Path, **settings: str) -> Case:
    case = Case(f"statements {'postgresql' if settings else 'sqlite'}")
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.statements"],
        cwd=BASE_DIR,
        env=embedded(directory, **settings).environment,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    case.figures.append(f"{len(lines)} lines")
    case.check(done.returncode == 0, done.stdout + done.stderr)
    return case

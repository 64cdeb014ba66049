"""The cost of a turn at the end of a long chain: rows written, statements, database time.

    python -m tests.perf.chain [--turns 1000]

Prints JSON. Uses the database of the settings (`DATABASE_URL`, or SQLite in the data directory), which should be empty.
Database time is the time of executing and fetching; times are medians of nine turns.
"""

import argparse
import json
import os
import statistics
from dataclasses import asdict, dataclass

from tests.processes import run_python

from .load.servers import database
from .options import Options
from .report import Figure, Report

TURNS, EARLY, SAMPLES = 1000, 10, 9
LIMIT_MS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainResult:
    """Measurements of turn 10, of the last turn, and of a branch from the middle."""

    database: str
    early_ms: float
    late_ms: float
    early_rows: dict[str, int]
    late_rows: dict[str, int]
    branch_rows: dict[str, int]
    early_statements: int
    late_statements: int
    history_reads: int

    @property
    def is_constant(self) -> bool:
        """Whether a turn's rows and statements don't depend on its position."""
        return (
            self.early_rows == self.late_rows == self.branch_rows
            and self.early_statements == self.late_statements
            and self.history_reads == 1
        )


def run_chain(turns: int) -> ChainResult:
    """Build a chain of so many turns, then a branch from its middle."""
    from django.db import connection

    from tests.turns import ApiUser, row_counts, timed_queries

    user = ApiUser.make()
    previous: str | None = None
    middle = ""
    times: list[float] = [0.0]
    statements: dict[int, list[str]] = {}
    rows: dict[int, dict[str, int]] = {}
    for number in range(1, turns + 1):
        user.announce()
        is_measured = number in (EARLY, turns)
        before = row_counts() if is_measured else {}
        with timed_queries() as queries:
            previous = user.turn(f"turn {number}", previous=previous)
        times.append(queries.seconds * 1000)
        if is_measured:
            rows[number] = row_growth(before, row_counts())
            statements[number] = queries.statements
        if number == turns // 2:
            middle = previous
    before = row_counts()
    user.turn("a branch", previous=middle)
    return ChainResult(
        database=connection.vendor,
        early_ms=statistics.median(times[EARLY : EARLY + SAMPLES]),
        late_ms=statistics.median(times[-SAMPLES:]),
        early_rows=rows[EARLY],
        late_rows=rows[turns],
        branch_rows=row_growth(before, row_counts()),
        early_statements=len(statements[EARLY]),
        late_statements=len(statements[turns]),
        history_reads=sum("ancestry" in text for text in statements[turns]),
    )


def row_growth(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """The number of new rows of each kind."""
    return {name: count - before[name] for name, count in after.items()}


def run(options: Options, report: Report) -> None:
    """Measure both databases, each in a separate process."""
    with database() as url:
        for name, database_url in (("sqlite", ""), ("postgresql", url)):
            if database_url is None:
                print("chain, postgresql: not measured, it needs PostgreSQL")
                continue
            (options.directory / name).mkdir()
            done = run_python(
                "-m",
                "tests.perf.chain",
                data_dir=options.directory / name,
                seconds=600,
                RESPONSES_ENGINE="scripted",
                DATABASE_URL=database_url,
            )
            done.check_returncode()
            result = json.loads(done.stdout)
            assert result["is_constant"], result
            report.add_details(f"chain/{name}", result)
            title = f"chain of {TURNS} turns, {name}, database time of a turn"
            report.add(f"chain/{name}/early", Figure(title=f"{title} {EARLY}", value=result["early_ms"], unit="ms"))
            later = result["late_ms"] - result["early_ms"]
            report.add(
                f"chain/{name}/growth",
                Figure(title=f"{title} at the end, beyond that", value=later, unit="ms", at_most=LIMIT_MS),
            )


def main() -> None:
    """Build the chain and print the measurements."""
    parser = argparse.ArgumentParser(description="Measure the cost of a turn at the end of a long chain.")
    parser.add_argument("--turns", type=int, default=TURNS)
    arguments = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "responses_site.settings")
    prepare_django()
    result = run_chain(arguments.turns)
    print(json.dumps(asdict(result) | {"is_constant": result.is_constant}))


def prepare_django() -> None:
    """Load Django and migrate the database."""
    import django

    django.setup()

    from django.core.management import call_command

    call_command("migrate", verbosity=0, interactive=False)


if __name__ == "__main__":
    main()

"""A process that is killed at any statement completes a deletion or does nothing. `make faults` tries them all."""

from tests.processes import run_python

OPERATIONS = ("chain_deletion", "end_without_storing")


def check_statements(*operations: str, data_dir, **settings: str) -> None:
    """Kill the process at every statement of these operations."""
    ended = run_python("-m", "tests.faults.statements", *operations, data_dir=data_dir, seconds=300, **settings)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.count(": good\n") == len(operations)


def test_on_sqlite(tmp_path) -> None:
    """Before and after each commit too."""
    check_statements(*OPERATIONS, data_dir=tmp_path, RESPONSES_ENGINE="scripted")


def test_on_postgresql(postgres_url: str, tmp_path) -> None:
    """The same with PostgreSQL's locks."""
    check_statements(OPERATIONS[0], data_dir=tmp_path, RESPONSES_ENGINE="scripted", DATABASE_URL=postgres_url)

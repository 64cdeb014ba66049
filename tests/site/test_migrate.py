"""`manage.py migrate`, as several machines or terminals run it at the same moment."""

import subprocess
import sys
from pathlib import Path

import pytest

from responses_site.setting_kinds import BASE_DIR
from tests.live.server import LiveServer, embedded, team
from tests.services import fresh_database

AT_ONCE = 3


@pytest.mark.parametrize("shape", ["embedded", "team"])
def test_machines_that_start_together_make_the_tables_once(
    shape: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """None of them fails, and afterwards nothing is left to do."""
    if shape == "embedded":
        migrate_at_once(embedded(tmp_path))
        return
    with fresh_database(request.getfixturevalue("postgres_server")) as url:
        migrate_at_once(team(tmp_path, database_url=url, redis_url="redis://127.0.0.1"))


def migrate_at_once(server: LiveServer) -> None:
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    processes = [
        subprocess.Popen(command, cwd=BASE_DIR, env=server.environment, stderr=subprocess.PIPE, text=True)
        for _ in range(AT_ONCE)
    ]
    endings = [(process.communicate(timeout=60)[1], process.returncode) for process in processes]
    assert all(status == 0 for _, status in endings), endings
    assert server.manage("migrate", "--check") == ""

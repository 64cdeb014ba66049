"""`manage.py migrate`, run by several machines or terminals at the same time."""

import subprocess
import sys
from pathlib import Path

import pytest

from responses_site.setting_kinds import BASE_DIR
from tests.live.server import LiveServer, embedded, team
from tests.services import fresh_database

AT_ONCE = 3


@pytest.mark.parametrize("shape", ["embedded", "team"])
def test_machines_that_start_together_create_the_tables_once(
    shape: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """None of them fails, and no migration is left."""
    if shape == "embedded":
        migrate_at_once(embedded(tmp_path))
        return
    with fresh_database(request.getfixturevalue("postgres_server")) as url:
        migrate_at_once(team(tmp_path, database_url=url, redis_url="redis://127.0.0.1", web=2, workers=2))


def migrate_at_once(server: LiveServer) -> None:
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    processes = [
        subprocess.Popen(command, cwd=BASE_DIR, env=server.environment, stderr=subprocess.PIPE, text=True)
        for _ in range(AT_ONCE)
    ]
    endings = [(process.communicate(timeout=60)[1], process.returncode) for process in processes]
    assert all(status == 0 for _, status in endings), endings
    assert server.manage("migrate", "--check") == ""


KEYS_BEFORE = """
from django.core.management import call_command
from django.db import connection
call_command("migrate", "responses_api", "0011", verbosity=0)
def execute(*statements):
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
ADD = (
    "INSERT INTO responses_api_apikey (project_id, name, prefix, digest, created_at) "
    "SELECT id, 'a', 'p', %s, '2026-11-30 12:00:00' FROM responses_api_project"
)
execute("INSERT INTO responses_api_project (public_id, name, created_at) VALUES ('proj_1', 'p', '2026-11-30 12:00:00')")
{before}
call_command("migrate", verbosity=0)
from responses_api.models import FirstKey
print(FirstKey.objects.count())
for digest in "bc":
    execute(ADD % repr(digest), "DELETE FROM responses_api_apikey")
print(FirstKey.objects.count())
"""


@pytest.mark.parametrize("shape", ["embedded", "team"])
@pytest.mark.parametrize(
    ("before", "remembered"), [("execute(ADD % \"'a'\", 'DELETE FROM responses_api_apikey')", 1), ("", 0)]
)
def test_the_store_remembers_that_a_key_was_made(
    shape: str, before: str, remembered: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Even one that was deleted before the migration; later ones by a trigger, whoever writes them."""

    def check(server: LiveServer) -> None:
        shown = server.manage("shell", "-v", "0", "-c", KEYS_BEFORE.format(before=before))
        assert shown.split() == [str(remembered), "1"]

    if shape == "embedded":
        check(embedded(tmp_path))
        return
    with fresh_database(request.getfixturevalue("postgres_server")) as url:
        check(team(tmp_path, database_url=url, redis_url="redis://127.0.0.1", web=2, workers=2))

"""Starting the server: one line per error, and two servers on one machine."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from responses_site.setting_kinds import BASE_DIR
from tests.processes import run_python

SHOW = (
    "from django.conf import settings as s; print(s.SECRET_KEY, s.DATABASES['default']['NAME'], s.SESSION_COOKIE_NAME)"
)


def test_a_bad_value_ends_the_start_with_one_line(tmp_path: Path) -> None:
    """No traceback: the user needs the name and the allowed values."""
    ended = run_python("manage.py", "check", data_dir=tmp_path, PORT="eighty")
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr == "error: PORT must be a whole number from 0 to 65535, not 'eighty'.\n"


def test_a_data_directory_that_cant_be_made_is_one_line(tmp_path: Path) -> None:
    """The database and the secret key are there."""
    (tmp_path / "file").write_text("")
    ended = run_python("manage.py", "check", data_dir=tmp_path / "file" / "below")
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: RESPONSES_DATA_DIR must be a directory")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("command", [["serve"], ["key", "--name", "a", "--project", "b"]], ids=lambda words: words[0])
def test_a_database_that_cant_be_used_is_one_line(tmp_path: Path, command: list[str]) -> None:
    """No traceback either: the line names the error and the variable."""
    url = f"sqlite:///{tmp_path}/missing/database.sqlite3"
    ended = run_python("manage.py", *command, data_dir=tmp_path, DATABASE_URL=url, RESPONSES_ENGINE="scripted")
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: The database can't be used: unable to open database file")
    assert ended.stderr.count("\n") == 1


def test_two_data_directories_are_two_servers(tmp_path: Path) -> None:
    """Each has its own database, cookies and secret, which has mode 0600 and survives restarts."""
    first, second = tmp_path / "first", tmp_path / "second"
    shown = run_python("-c", SHOW, data_dir=first, PORT="8001")
    assert shown.stdout == run_python("-c", SHOW, data_dir=first, PORT="8001").stdout
    key, database, cookie = shown.stdout.split()
    other_key, other_database, other_cookie = run_python("-c", SHOW, data_dir=second, PORT="8002").stdout.split()
    assert key != other_key
    assert database != other_database
    assert cookie != other_cookie
    assert stat.S_IMODE((first / "secret.key").stat().st_mode) == 0o600


def test_data_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    """Whatever the shell's umask. If others could read it, the next start corrects the mode."""
    place = tmp_path / "data"

    def modes() -> dict[str, int]:
        return {path.name: stat.S_IMODE(path.stat().st_mode) for path in (place, *place.iterdir())}

    before = os.umask(0)
    try:
        assert run_python("manage.py", "migrate", "--verbosity", "0", data_dir=place).returncode == 0
        made = modes()
        assert made["data"] == 0o700
        assert {"responses.sqlite3", "secret.key"} <= set(made)
        assert {mode & 0o077 for mode in made.values()} == {0}
        place.chmod(0o755)
        for path in place.iterdir():
            path.chmod(0o644)
        assert run_python("manage.py", "check", data_dir=place).returncode == 0
        assert {mode & 0o077 for mode in modes().values()} == {0}
    finally:
        os.umask(before)


def test_processes_that_start_together_agree_on_the_secret(tmp_path: Path) -> None:
    """The first to write wins; no session is signed with a lost key."""
    code = (
        "import pathlib, sys; from responses_site.data_dir import load_or_create_secret_key as load; "
        "print(load(pathlib.Path(sys.argv[1])))"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=BASE_DIR, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert len({process.communicate(timeout=60)[0] for process in processes}) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["secret.key"]


@pytest.mark.parametrize("loaded", ["responses_site.asgi", "responses_site.celery"])
def test_the_web_side_imports_no_model_library(tmp_path: Path, loaded: str) -> None:
    """Only workers load models: a web process starts fast and stays small."""
    code = (
        f"import django; django.setup(); import {loaded}, sys; from django.urls import get_resolver; "
        "get_resolver().url_patterns; print({'mlx', 'mlx_lm', 'transformers', 'numpy'} & set(sys.modules))"
    )
    assert run_python("-c", code, data_dir=tmp_path).stdout == "set()\n"


def test_another_secret_than_the_databases_is_refused(tmp_path: Path) -> None:
    """Before it listens, in one line with the remedy, a command that works."""

    def serve(**settings: Any) -> "subprocess.CompletedProcess[str]":
        # An address that no machine has: a server that is allowed to start fails there.
        address: dict[str, Any] = {"HOST": "192.0.2.1", "PORT": "8003"}
        return run_python("manage.py", "serve", data_dir=tmp_path, RESPONSES_ENGINE="scripted", **address, **settings)

    run_python("manage.py", "key", "--name", "a", "--project", "b", data_dir=tmp_path)
    assert "Could not listen" in serve().stderr
    first = (tmp_path / "secret.key").read_text().strip()
    second = first[::-1]
    # With the old secret as fallback, the new one becomes the database's.
    assert "Could not listen" in serve(RESPONSES_SECRET_KEY=second, RESPONSES_SECRET_KEY_FALLBACKS=first).stderr
    assert "Could not listen" in serve(RESPONSES_SECRET_KEY=second).stderr
    refused = serve()
    assert refused.returncode == 1
    assert "The secret (`secret.key` in the data directory) is not the one" in refused.stderr
    assert refused.stderr.count("\n") == 1
    accepted = run_python("manage.py", "accept_secret", data_dir=tmp_path)
    assert accepted.returncode == 0, accepted.stderr
    assert "Could not listen" in serve().stderr

"""`manage.py key` and `manage.py admin`, as `make key` and `make admin` call them."""

import io
import sys
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from responses_api.models import ApiKey, Project, User
from responses_api.services.accounts.authenticate import authenticate
from tests.factories import make_project

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> list[str]:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue().splitlines()


def test_the_last_line_is_the_key() -> None:
    """It gives access to the project, which is created if it is new."""
    lines = run("key", "--name", "ci", "--project", "web")
    caller = authenticate(x_api_key=lines[-1])
    assert (caller.project.name, caller.key and caller.key.name) == ("web", "ci")
    assert "Made the project “web”." in lines
    again = run("key", "--name", "ci", "--project", "web")
    assert authenticate(x_api_key=again[-1]).project == caller.project
    assert Project.objects.count() == 1


def test_keys_have_an_expiry_and_an_owner(administrator: User) -> None:
    """`--expires-days` and `--owner`."""
    run("key", "--name", "ci", "--project", "web", "--expires-days", "7", "--owner", "ada")
    key = ApiKey.objects.get()
    assert key.owner == administrator
    assert key.expires_at is not None
    assert timedelta(days=6) < key.expires_at - timezone.now() <= timedelta(days=7)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--name", "", "--project", "web"], "name"),
        (["--name", "x" * 101, "--project", "web"], "name"),
        (["--name", "ci", "--project", " "], "name"),
        (["--name", "ci", "--project", "web", "--expires-days", "0"], "whole number from 1"),
        (["--name", "ci", "--project", "web", "--owner", "nobody"], "no user called 'nobody'"),
    ],
)
def test_a_key_that_cannot_be_made_leaves_nothing(arguments: list[str], sentence: str) -> None:
    """One sentence gives the reason; no project is left behind either."""
    with pytest.raises(CommandError, match=sentence):
        run("key", *arguments)
    assert not ApiKey.objects.exists()
    assert not Project.objects.exists()


def test_scripts_give_the_password_on_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """The administrator has all permissions."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("correct horse 9\n"))
    run("admin", "--username", "ada", "--password-stdin")
    user = User.objects.get()
    assert (user.username, user.is_staff, user.is_superuser) == ("ada", True, True)
    assert user.check_password("correct horse 9")


def test_scripts_give_name_and_password_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the names that Django's own command reads."""
    monkeypatch.setenv("DJANGO_SUPERUSER_USERNAME", "eve")
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", "correct horse 9")
    run("admin")
    assert User.objects.get().username == "eve"
    with pytest.raises(CommandError, match="already"):
        run("admin")


@pytest.mark.parametrize(
    ("name", "password", "sentence"),
    [("ada", "short", "too short"), ("ada", "12345678901", "numeric"), ("a b", "correct horse 9", "valid username")],
)
def test_bad_names_and_passwords_are_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, password: str, sentence: str
) -> None:
    """With the reason."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(password + "\n"))
    with pytest.raises(CommandError, match=sentence):
        run("admin", "--username", name, "--password-stdin")
    assert not User.objects.exists()


def test_without_a_terminal_it_says_how_to_give_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not wait for input that can't come."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    with pytest.raises(CommandError, match="--password-stdin"):
        run("admin")
    with pytest.raises(CommandError, match="standard input has no password"):
        run("admin", "--password-stdin")


def test_people_are_asked_until_the_answers_are_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that differ and one that is too short, then a good one; the name has a default."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    answers = iter(["one", "two", "short", "short", "correct horse 9", "correct horse 9"])
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr("builtins.input", lambda prompt: "")
    monkeypatch.setattr("getpass.getpass", lambda prompt: next(answers))
    errors = io.StringIO()
    call_command("admin", stdout=io.StringIO(), stderr=errors)
    assert "differ" in errors.getvalue()
    assert "too short" in errors.getvalue()
    assert User.objects.get().username == "admin"


def test_projects_keep_their_settings_when_keys_are_added() -> None:
    """An existing project is used as it is."""
    project = make_project("web")
    Project.objects.filter(pk=project.pk).update(store_default=False)
    run("key", "--name", "ci", "--project", "web")
    assert Project.objects.get().store_default is False

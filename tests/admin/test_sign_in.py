"""Signing in: limited attempts, limited concurrent hashing, and a page that says what happened."""

from typing import Any

import pytest
from axes.models import AccessAttempt
from django.http import HttpResponse
from django.test import Client, RequestFactory

from responses_api.admin import sign_in
from responses_api.models import User
from responses_api.services.accounts.create_administrator import create_administrator

from .conftest import PASSWORD

LOGIN = "/admin/login/"
ATTEMPTS = "/admin/axes/accessattempt/"


def signed_in(username: str = "ada", password: str = PASSWORD, address: str = "192.0.2.1") -> Any:
    """The answer to a sign-in attempt."""
    return Client().post(LOGIN, {"username": username, "password": password}, REMOTE_ADDR=address)


def guess(count: int, **where: str) -> list[HttpResponse]:
    return [signed_in(password=f"wrong {number}", **where) for number in range(count)]


def test_too_many_attempts_lock_a_name_for_a_while(administrator: User, settings: Any) -> None:
    """From any address, and for the right password too; other names still work. The page says so, and for how long."""
    create_administrator(username="bob", password=PASSWORD)
    *before, last = guess(settings.AXES_FAILURE_LIMIT)
    assert {answer.status_code for answer in before} == {200}
    for answer in (last, signed_in(), signed_in(address="192.0.2.2")):
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "900")
        assert "Sign-in is locked" in answer.content.decode()
    assert signed_in("bob").status_code == 302


def test_a_lock_ends_by_itself(administrator: User, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Further attempts don't extend it."""
    guess(settings.AXES_FAILURE_LIMIT + 3)
    AccessAttempt.objects.update(
        attempt_time=AccessAttempt.objects.earliest("pk").attempt_time - settings.AXES_COOLOFF_TIME
    )
    assert signed_in().status_code == 302


def test_the_right_password_resets_the_count(administrator: User, settings: Any) -> None:
    for _ in range(3):
        guess(settings.AXES_FAILURE_LIMIT - 1)
        assert signed_in().status_code == 302
    assert not AccessAttempt.objects.exists()


def test_locks_are_shown_and_ended_in_the_admin(client: Client, settings: Any) -> None:
    """By a signed-in administrator; no password is stored."""
    guess(settings.AXES_FAILURE_LIMIT)
    listed = client.get(ATTEMPTS).content.decode()
    assert "locked out" in listed
    assert "192.0.2.1" in listed
    (attempt,) = AccessAttempt.objects.all()
    assert "wrong" not in attempt.post_data
    assert client.get(f"{ATTEMPTS}{attempt.pk}/change/").status_code == 200
    client.post(ATTEMPTS, {"action": "delete_selected", "_selected_action": [attempt.pk], "post": "yes"})
    assert signed_in().status_code == 302


def test_few_passwords_are_hashed_at_once(administrator: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Further attempts are told to try again, and are not counted."""
    monkeypatch.setattr(sign_in, "WAIT_SECONDS", 0.01)
    with sign_in.place_to_hash(), sign_in.place_to_hash():
        answer = signed_in(password="wrong")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert "Try again in a moment" in answer.content.decode()
    assert not AccessAttempt.objects.exists()
    assert signed_in().status_code == 302


@pytest.mark.parametrize(
    ("behind_tls", "forwarded", "address"),
    [
        (False, "203.0.113.7", "127.0.0.1"),
        (True, "203.0.113.7", "203.0.113.7"),
        (True, "10.9.9.9, 203.0.113.7", "203.0.113.7"),
        (True, None, "127.0.0.1"),
    ],
)
def test_the_address_is_the_one_that_the_proxy_saw(
    settings: Any, behind_tls: bool, forwarded: str | None, address: str
) -> None:
    """Headers that the client sets are ignored."""
    settings.RESPONSES_BEHIND_TLS = behind_tls
    headers = {} if forwarded is None else {"x-forwarded-for": forwarded}
    assert sign_in.client_address(RequestFactory().post(LOGIN, headers=headers)) == address

"""The page at the root."""

from collections.abc import Callable
from typing import Any, cast

import httpx
import pytest
from django.contrib.staticfiles import finders
from django.core.asgi import get_asgi_application
from django.test import Client
from django.test.utils import CaptureQueriesContext

from responses_api.services.accounts.create_administrator import create_administrator
from responses_api.services.accounts.create_key import create_key
from tests.factories import make_project, make_response, make_worker

pytestmark = pytest.mark.django_db


def page(client: Client, **headers: str) -> str:
    answer = client.get("/", headers=headers)
    assert answer.status_code == 200
    return answer.content.decode()


def test_it_shows_how_to_connect(client: Client) -> None:
    """The base URL with the requested host, the models with their context, snippets for a served model."""
    make_worker()
    text = page(client, host="localhost:8080")
    assert "http://localhost:8080/v1" in text
    assert "4096 tokens" in text
    assert "<code>also</code>" in text
    assert "&quot;model&quot;: &quot;scripted&quot;" in text
    assert "need no key" in text
    assert "YOUR_API_KEY" not in text


def test_it_says_that_no_worker_runs(client: Client) -> None:
    """It still shows the snippets, for the default model."""
    text = page(client)
    assert "No worker is running" in text
    assert "smollm2-135m" in text


def test_it_says_that_a_key_is_needed(client: Client) -> None:
    """As soon as one exists."""
    create_key(project=make_project(), name="laptop")
    text = page(client)
    assert "YOUR_API_KEY" in text
    assert "make key NAME=" in text


def test_it_says_how_to_sign_in(client: Client) -> None:
    """`make admin` until there is an administrator, then a link."""
    assert "make admin" in page(client)
    create_administrator(username="ada", password="correct horse 9")
    text = page(client)
    assert "make admin" not in text
    assert 'href="/admin/"' in text


def test_it_shows_no_stored_data(
    client: Client, django_assert_max_num_queries: Callable[..., CaptureQueriesContext]
) -> None:
    """No conversation, project or key; few queries, and no session."""
    project = make_project("secret project")
    key, _ = create_key(project=project, name="secret key")
    make_response("secret question", "secret answer", project=project, key=key)
    with django_assert_max_num_queries(3):
        answer = client.get("/")
    text = answer.content.decode()
    assert not any(word in text for word in ("secret", key.prefix, "resp_"))
    assert not answer.cookies


def test_browsers_are_told_to_load_nothing_from_elsewhere(client: Client) -> None:
    """A strict policy, and a page that obeys it: no script and no address elsewhere."""
    answer = client.get("/")
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["X-Frame-Options"] == "DENY"
    text = answer.content.decode()
    assert 'src="http' not in text
    assert " style=" not in text
    assert text.count("<script ") == text.count("<script") == 1
    for name in ("web.css", "copy.js", "mark.svg", "admin.css", "forget_form.js"):
        assert finders.find(f"responses_api/{name}")


def test_foreign_hosts_and_methods_are_refused_as_everywhere(client: Client) -> None:
    """With the API's error object."""
    foreign = client.get("/", headers={"host": "evil.example"})
    assert (foreign.status_code, foreign.json()["error"]["type"]) == (400, "invalid_request_error")
    posted = client.post("/")
    assert (posted.status_code, posted.json()["error"]["code"]) == (405, "method_not_allowed")
    assert posted.headers["Allow"] == "GET, HEAD"
    assert client.head("/").content == b""
    assert "Content-Security-Policy" not in foreign.headers


@pytest.mark.django_db(transaction=True)
async def test_it_is_served_on_the_event_loop_too() -> None:
    """With its policy; the API's JSON has none."""
    transport = httpx.ASGITransport(cast("Any", get_asgi_application()))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        front = await client.get("/")
        health = await client.get("/healthz")
    assert front.status_code == 200
    assert "default-src 'none'" in front.headers["Content-Security-Policy"]
    assert "Content-Security-Policy" not in health.headers

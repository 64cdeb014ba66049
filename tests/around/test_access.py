"""Access control: who may call, and that this is decided before anything else of a request is read."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError
from django.urls import URLPattern
from django.utils import timezone

from responses_api.api.urls import urlpatterns
from responses_api.consumers.bodies import bodies
from responses_api.models import ApiKey, Project
from responses_api.services.accounts.authenticate import default_project
from responses_api.services.accounts.create_key import create_key, revoke_key
from responses_api.services.accounts.delete_key import delete_keys
from responses_site.asgi import application
from responses_site.env import Environment

from .application import browser

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = "https://chat.example.com"
JSON = {"content-type": "application/json"}
ANSWER_SECONDS = 10
OPEN_TO_ALL = {"v1/openapi.json", "openapi.json"}


def addresses() -> Iterator[str]:
    """Every path of the URL configuration that needs a caller."""
    for pattern in urlpatterns:
        assert isinstance(pattern, URLPattern)
        route = str(pattern.pattern)
        if route not in OPEN_TO_ALL:
            for name in ("response_id", "conversation_id", "item_id", "name"):
                route = route.replace(f"<str:{name}>", "x").replace(f"<path:{name}>", "x")
            assert "<" not in route
            yield f"/{route}"


ADDRESSES = list(addresses())


def closed_without_key() -> dict[str, str]:
    """A key exists, and the request has none."""
    create_key(project=default_project(), name="laptop")
    return {}


def wrong_key() -> dict[str, str]:
    create_key(project=default_project(), name="laptop")
    return {"authorization": "Bearer sk-mlx-wrong"}


def revoked_key() -> dict[str, str]:
    key, secret = create_key(project=default_project(), name="laptop")
    revoke_key(key=key)
    return {"authorization": f"Bearer {secret}"}


def expired_key() -> dict[str, str]:
    key, secret = create_key(project=default_project(), name="laptop")
    ApiKey.objects.filter(pk=key.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    return {"x-api-key": secret}


def deleted_last_key() -> dict[str, str]:
    """The last key was deleted, and is sent nevertheless."""
    headers = revoked_key()
    delete_keys(keys=ApiKey.objects.all())
    assert not ApiKey.objects.exists()
    return headers


def no_key_after_the_last_was_deleted() -> dict[str, str]:
    deleted_last_key()
    return {}


def deleted_project() -> dict[str, str]:
    _, secret = create_key(project=Project.objects.create(name="gone"), name="laptop")
    Project.objects.all().delete()
    return {"authorization": f"Bearer {secret}"}


OUTSIDERS: list[Callable[[], dict[str, str]]] = [
    closed_without_key,
    wrong_key,
    revoked_key,
    expired_key,
    deleted_last_key,
    no_key_after_the_last_was_deleted,
    deleted_project,
]


async def ask(path: str, method: str = "GET", *, query: str = "", **headers: str) -> Any:
    """Status and headers of the answer to a request whose body never comes."""
    answers: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()  # an application that waits for the body never answers
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        answers.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "scheme": "http",
        "query_string": query.encode(),
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
        "client": ["127.0.0.1", 1],
        "server": ["127.0.0.1", 8080],
    }
    await asyncio.wait_for(application(scope, receive, send), ANSWER_SECONDS)
    response_headers = {name.decode().lower(): value.decode() for name, value in answers[0]["headers"]}
    return answers[0]["status"], response_headers


@pytest.mark.parametrize("outsider", OUTSIDERS, ids=lambda outsider: outsider.__name__)
async def test_outsiders_get_401_at_every_address(outsider: Callable[[], dict[str, str]]) -> None:
    """Whatever the method, before query and body are read; streams too."""
    headers = await sync_to_async(outsider)()
    for path in ADDRESSES:
        for method in ("GET", "HEAD", "POST", "DELETE", "PUT", "OPTIONS", "BREW"):
            for query in ("", "stream=true&foo=1"):
                status, answered = await ask(path, method, query=query, content_length="9", **headers)
                assert status == 401, (method, path, query)
                assert answered["www-authenticate"] == "Bearer"
                assert answered["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "make",
    [
        lambda project: create_key(project=project, name="a"),
        lambda project: ApiKey.objects.create(project=project, name="a", prefix="p", digest="d"),
        lambda project: ApiKey.objects.bulk_create([ApiKey(project=project, name="a", prefix="p", digest="d")]),
    ],
    ids=["service", "row", "rows"],
)
async def test_a_key_closes_the_server_for_good(make: Callable[[Project], Any]) -> None:
    """However the key was made, and even after it is deleted."""
    async with browser() as http:
        assert (await http.get("/v1/models")).status_code == 200
        await sync_to_async(lambda: make(default_project()))()
        assert (await http.get("/v1/models")).status_code == 401
        await sync_to_async(ApiKey.objects.all().delete)()
        assert (await http.get("/v1/models")).status_code == 401
        assert "Requests need an API key" in (await http.get("/")).text


@pytest.mark.parametrize(
    ("given", "is_open"),
    [
        ({}, True),
        ({"HOST": "::1", "RESPONSES_ALLOWED_HOSTS": "localhost,[::1],host.docker.internal"}, True),
        ({"HOST": "0.0.0.0"}, False),
        ({"RESPONSES_BEHIND_TLS": "true"}, False),
        ({"RESPONSES_ALLOWED_HOSTS": "llm.example.com,127.0.0.1"}, False),
        ({"RESPONSES_ALLOWED_HOSTS": "*"}, False),
        (
            {
                "REDIS_URL": "redis://127.0.0.1",
                "DATABASE_URL": "postgresql://127.0.0.1/a",
                "RESPONSES_SECRET_KEY": "0123456789" * 5,
            },
            False,
        ),
    ],
)
def test_open_access_is_for_this_machine_alone(given: dict[str, str], is_open: bool) -> None:
    """Not with TLS, not for a team, not beyond loopback by address or by name."""
    assert Environment.read(given).open_access is is_open


async def test_settings_that_reach_beyond_this_machine_need_a_key(settings: Any) -> None:
    settings.RESPONSES_OPEN_ACCESS = False
    for path in ADDRESSES:
        assert (await ask(path, "POST", content_length="9"))[0] == 401
    async with browser() as http:
        assert "Requests need an API key" in (await http.get("/")).text


@pytest.mark.parametrize(
    "name", ["Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Real-IP", "Via", "CF-Connecting-IP"]
)
async def test_what_a_proxy_forwards_needs_a_key(name: str) -> None:
    """The client may be anywhere."""
    async with browser(**{name: "203.0.113.7"}) as http:
        for path in ADDRESSES:
            assert (await http.get(path)).status_code == 401
            assert (await http.post(path, json={"input": "a", "stream": True})).status_code == 401
        assert "Requests need an API key" in (await http.get("/")).text


FOREIGN: list[dict[str, str]] = [
    {"origin": PAGE},
    {"origin": "null"},
    {"origin": "http://localhost:3000"},
    {"origin": "https://localhost"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"origin": "http://localhost", "sec-fetch-site": "cross-site"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
async def test_pages_of_other_sites_are_refused_at_every_address(headers: dict[str, str]) -> None:
    """A browser on this machine sends them for any page open in it; nothing of the request is read."""
    for path in ADDRESSES:
        for method in ("GET", "POST", "DELETE"):
            assert (await ask(path, method, host="localhost", content_length="9", **headers))[0] == 403, (method, path)
    async with browser(**headers) as http:
        refused = await http.post("/v1/responses", json={"input": "a", "stream": True})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "insufficient_permissions")
        assert "RESPONSES_CORS_ORIGINS" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://localhost", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
        {"origin": PAGE, "sec-fetch-site": "cross-site"},
    ],
    ids=str,
)
async def test_own_and_allowed_pages_are_served(settings: Any, headers: dict[str, str]) -> None:
    settings.RESPONSES_CORS_ORIGINS = (PAGE,)
    async with browser(**headers) as http:
        assert (await http.get("/v1/models")).status_code == 200
        assert (await http.post("/v1/conversations", json={})).status_code == 200


@pytest.mark.parametrize("host", ["host.docker.internal:8080", "host.containers.internal", "[::1]:1", "localhost:1"])
async def test_containers_call_this_machine_by_a_name(host: str) -> None:
    async with browser(host=host) as http:
        assert (await http.get("/v1/models")).status_code == 200


@pytest.mark.parametrize(
    ("path", "method", "headers", "status", "code"),
    [
        ("/v1/nothing", "POST", JSON, 404, "not_found"),
        ("/nothing", "PUT", JSON, 404, "not_found"),
        ("/", "POST", JSON, 405, "method_not_allowed"),
        ("/v1/models", "POST", JSON, 405, "method_not_allowed"),
        ("/v1/responses", "PUT", JSON, 405, "method_not_allowed"),
        ("/v1/responses", "POST", JSON | {"content_length": str(1 << 40)}, 413, "request_too_large"),
        ("/v1/responses", "POST", JSON | {"content-encoding": "gzip"}, 415, "unsupported_media_type"),
        ("/v1/responses/compact", "POST", {"content-type": "text/plain"}, 415, "unsupported_media_type"),
        ("/v1/responses/input_tokens", "POST", {"content-type": "multipart/form-data"}, 415, "unsupported_media_type"),
        ("/v1/conversations", "POST", {}, 415, "unsupported_media_type"),
        ("/v1/conversations", "POST", {"transfer-encoding": "chunked"}, 415, "unsupported_media_type"),
        ("/v1/responses/x", "GET", JSON, 404, "not_found"),
        ("/v1/responses/x/cancel", "POST", JSON, 404, "not_found"),
        ("/v1/responses/x", "DELETE", JSON, 404, "not_found"),
        ("/admin/login/", "POST", {"content_length": str(1 << 20)}, 413, "request_too_large"),
    ],
)
async def test_headers_decide_before_a_body_is_read(
    path: str, method: str, headers: dict[str, str], status: int, code: str
) -> None:
    if "transfer-encoding" not in headers:
        headers = {"content_length": "9", **headers}
    assert (await ask(path, method, host="localhost", **headers))[0] == status, code


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8", "application/vnd.x+json"])
@pytest.mark.parametrize("body", [b"{}", b"\xef\xbb\xbf{}"])
async def test_json_is_accepted_under_all_its_media_types(kind: str, body: bytes) -> None:
    """With a byte order mark too."""
    async with browser() as http:
        assert (await http.post("/v1/conversations", content=body, headers={"content-type": kind})).status_code == 200


async def test_a_refused_media_type_names_the_header_to_send() -> None:
    """`curl -d` sends JSON as a form."""
    async with browser() as http:
        refused = await http.post("/v1/responses", data={"input": "a"})
        assert refused.status_code == 415
        message = refused.json()["error"]["message"]
        assert "application/x-www-form-urlencoded" in message
        assert "`Content-Type: application/json`" in message
        compressed = await http.post("/v1/responses", content=b"\x1f\x8b", headers=JSON | {"content-encoding": "gzip"})
        assert "gzip" in compressed.json()["error"]["message"]
        empty = await http.post("/v1/conversations")
        assert empty.status_code == 200


async def test_an_unavailable_database_is_503(monkeypatch: pytest.MonkeyPatch) -> None:
    """At every path, for streams too: the caller can't be identified."""

    def unavailable(*args: Any, **kwargs: Any) -> Any:
        raise OperationalError("gone")

    monkeypatch.setattr("responses_api.api.authentication.authenticate", unavailable)
    for path in ADDRESSES:
        for method in ("GET", "POST"):
            status, headers = await ask(path, method, query="stream=true", content_length="9", **JSON)
            assert (status, "retry-after" in headers) == (503, True), path


async def test_bodies_are_bounded_per_caller_and_in_total(settings: Any) -> None:
    """429 and 503 with `Retry-After`; afterwards all memory is released."""
    settings.RESPONSES_BODIES_MAX_BYTES_PER_KEY = 2000
    async with browser() as http:
        body = {"items": [], "metadata": {str(number): "x" * 400 for number in range(5)}}
        refused = await http.post("/v1/conversations", json=body)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
        settings.RESPONSES_BODIES_MAX_BYTES_PER_KEY = 10_000
        settings.RESPONSES_BODIES_MAX_BYTES = 2000
        refused = await http.post("/v1/conversations", json=body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "server_overloaded")
        settings.RESPONSES_BODIES_MAX_BYTES = 4000
        for _ in range(3):
            assert (await http.post("/v1/conversations", json=body)).status_code == 200
    assert bodies.total == 0


async def test_a_body_that_trickles_is_408(settings: Any) -> None:
    settings.RESPONSES_READ_TIMEOUT_SECONDS = 0.01

    async def trickle() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(0.2)
        yield b"}"

    async with browser() as http:
        # The transport of httpx forwards a body piece by piece.
        late = await http.post("/v1/conversations", content=trickle(), headers=JSON)
        assert (late.status_code, late.json()["error"]["code"]) == (408, "request_timeout")
    assert bodies.total == 0

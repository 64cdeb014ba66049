"""Bad input: the right status and envelope, and the server keeps serving."""

from typing import Any

import httpx
import pytest

from tests.live.client import JSON, check_envelope
from tests.live.server import LiveServer


@pytest.fixture
def http(server: LiveServer):
    with server.http() as client:
        yield client
        # Whatever was sent, the next request must be served.
        answer = client.post("/responses", json={"input": "still there?"})
        assert answer.status_code == 200


BROKEN = [
    b"",
    b"{",
    b"[1, 2",
    b'{"input": "a",}',
    b"\xff\xfe",
    b'{"input": "\\ud800"}',
    b"NaN",
    b'{"temperature": Infinity}',
    b"[" * 100_000,
]


@pytest.mark.parametrize("body", BROKEN, ids=lambda body: repr(body[:12]))
def test_a_body_that_is_not_json(http: httpx.Client, body: bytes) -> None:
    """Broken JSON is 400 with code invalid_json, however it is broken."""
    answer = http.post("/responses", content=body, headers=JSON)
    check_envelope(answer, 400, "invalid_json")


@pytest.mark.parametrize("path", ["/responses", "/responses/input_tokens", "/responses/compact", "/conversations"])
def test_a_body_of_too_many_values(http: httpx.Client, path: str) -> None:
    """Each would take fifty times its bytes in memory, so they are counted before they are parsed."""
    body = b'{"model": "m", "input": [' + b"[]," * 200_000 + b"[]]}"
    error = check_envelope(http.post(path, content=body, headers=JSON), 413, "request_too_large")
    assert "RESPONSES_BODY_MAX_VALUES" in error["message"]


def test_a_byte_order_mark_is_ignored(http: httpx.Client) -> None:
    answer = http.post("/responses", content=b'\xef\xbb\xbf{"input": "a"}', headers=JSON)
    assert answer.status_code == 200


def test_the_error_of_a_long_body_that_is_not_json_names_the_place(http: httpx.Client) -> None:
    body = b'{"input": "' + b"a" * 2_000_000 + b'", nul}'
    error = check_envelope(http.post("/responses", content=body, headers=JSON), 400, "invalid_json")
    assert "near byte 2000014" in error["message"]


REFUSED: list[tuple[dict[str, Any], str | None, str | None]] = [
    ({"input": 5}, "invalid_value", "input"),
    ({"input": [{"role": "user", "content": 7}]}, "invalid_value", "input[0].content"),
    ({"input": "a", "temperature": "hot"}, "invalid_value", "temperature"),
    ({"input": "a", "temperature": 3}, "invalid_value", "temperature"),
    ({"input": "a", "max_output_tokens": 0}, "invalid_value", "max_output_tokens"),
    ({"input": "a", "metadata": {"a": 1}}, "invalid_value", "metadata.a"),
    ({"input": "a", "nonsense": 1}, "unknown_parameter", "nonsense"),
    ({"input": "a", "stream": "yes"}, "invalid_value", "stream"),
    ({"input": "a", "background": "yes"}, "invalid_value", "background"),
    ({"input": "a", "reasoning": {"effort": "huge"}}, "invalid_value", "reasoning.effort"),
    ({"input": "a", "text": {"format": {"type": "grammar"}}}, "invalid_value", "text.format.type"),
    ({"input": "a", "truncation": "none"}, "invalid_value", "truncation"),
    ({"input": "a", "previous_response_id": "resp_unknown"}, "previous_response_not_found", "previous_response_id"),
    ({}, "missing_required_parameter", "input"),
    ({"input": "a\x00b"}, "invalid_value", "input"),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("payload", "code", "param"), REFUSED, ids=lambda value: str(value)[:40])
def test_a_bad_parameter_is_named(
    http: httpx.Client, payload: dict[str, Any], code: str, param: str, *, stream: bool
) -> None:
    """400 with the parameter's path, and for streams an HTTP error too: nothing has been sent yet."""
    payload = {"stream": stream, **payload}
    check_envelope(http.post("/responses", json=payload), 400, code, param)


@pytest.mark.parametrize("value", [[], "text", 5, None, True])
def test_a_body_that_is_not_an_object(http: httpx.Client, value: Any) -> None:
    """JSON that is not an object is a 400."""
    answer = http.post("/responses", json=value)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("stream", [False, True])
def test_an_unknown_model(http: httpx.Client, *, stream: bool) -> None:
    """404 with code model_not_found."""
    answer = http.post("/responses", json={"input": "a", "model": "gpt-99", "stream": stream})
    assert "gpt-99" in check_envelope(answer, 404, "model_not_found", "model")["message"]


@pytest.mark.parametrize("stream", [False, True])
def test_input_that_does_not_fit(http: httpx.Client, *, stream: bool) -> None:
    """The worker's refusal is an HTTP error, for streams too, with both numbers."""
    answer = http.post("/responses", json={"input": "a " * 140_000, "stream": stream})
    error = check_envelope(answer, 400, "context_length_exceeded", "input")
    assert "131072" in error["message"]


def test_unknown_ids(http: httpx.Client) -> None:
    """404 on every route with an id, whatever its form."""
    for response_id in ("resp_unknown", "x", "%00", "%F0%9F%98%80", "a" * 300):
        check_envelope(http.get(f"/responses/{response_id}"), 404, "not_found")
        check_envelope(http.delete(f"/responses/{response_id}"), 404, "not_found")
        check_envelope(http.get(f"/responses/{response_id}/input_items"), 404, "not_found")


def test_unknown_routes_and_methods(http: httpx.Client, server: LiveServer) -> None:
    """404 and 405 have error objects too; 405 names the allowed methods."""
    check_envelope(http.get("/nothing"), 404, "not_found")
    check_envelope(http.post("/nothing", json={}), 404, "not_found")
    answer = http.get("/responses")
    check_envelope(answer, 405, "method_not_allowed")
    assert "POST" in answer.headers["allow"]
    check_envelope(http.put("/models", json={}), 405, "method_not_allowed")


def test_bad_list_arguments(http: httpx.Client) -> None:
    """400 that names the argument."""
    response_id = http.post("/responses", json={"input": "a"}).json()["id"]
    items = f"/responses/{response_id}/input_items"
    for query, param in (
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=x", "limit"),
        ("order=up", "order"),
        ("after=msg_unknown", "after"),
        ("nonsense=1", "nonsense"),
    ):
        answer = http.get(f"{items}?{query}")
        assert answer.status_code == 400, query
        assert answer.json()["error"]["param"] == param
    check_envelope(http.delete(f"/responses/{response_id}?force=1"), 400, "unknown_parameter", "force")


def test_a_foreign_host_name_is_refused(http: httpx.Client) -> None:
    """A web page whose host name points to this machine gets nothing from Django or the ASGI application."""
    for stream in (False, True):
        answer = http.post("/responses", json={"input": "a", "stream": stream}, headers={"host": "evil.example"})
        assert answer.status_code == 400
        assert "host name" in answer.json()["error"]["message"]
    assert http.get("/models", headers={"host": "evil.example"}).status_code == 400


def test_every_path_works_without_v1(server: LiveServer) -> None:
    """Clients that leave out the version are served."""
    with httpx.Client(base_url=server.url.removesuffix("/v1"), headers=server.headers) as http:
        created = http.post("/responses", json={"input": "a"}).json()
        assert http.get(f"/responses/{created['id']}").json()["id"] == created["id"]
        assert http.get("/models").status_code == 200
        assert http.get("/healthz").json() == {"status": "ok"}


@pytest.mark.parametrize(
    "kind", ["multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "text/plain", "nonsense"]
)
def test_a_body_with_another_media_type_is_refused(http: httpx.Client, kind: str) -> None:
    """A web page may send such types to any server without a preflight."""
    refused = http.post("/responses", content=b'{"input": "hi"}', headers={"content-type": kind})
    check_envelope(refused, 415, "unsupported_media_type")


def test_options_is_not_a_method_of_these_routes(http: httpx.Client) -> None:
    """It reveals nothing of the code behind them."""
    check_envelope(http.options("/responses"), 405, "method_not_allowed")


def test_a_client_s_longest_item_id_is_stored(http: httpx.Client) -> None:
    """256 characters are stored, listed and continued."""
    longest = "m" * 256
    made = http.post("/responses", json={"input": [{"role": "user", "content": "x", "id": longest}]})
    assert made.status_code == 200, made.text
    listed = http.get(f"/responses/{made.json()['id']}/input_items").json()
    assert [item["id"] for item in listed["data"]] == [longest]

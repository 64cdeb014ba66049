"""Keys and projects through the API."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from openai import AuthenticationError, BadRequestError, NotFoundError

from tests.live.client import check_envelope, eventually
from tests.live.server import LiveServer


@pytest.fixture(scope="session")
def keys(keyed_server: LiveServer) -> dict[str, str]:
    """A key of each of two projects, and a second key of the first."""
    return dict(zip(("ada", "ada2", "bob"), keyed_server.make_keys("ada", "ada", "bob"), strict=True))


def test_once_a_key_exists_every_request_needs_one(keyed_server: LiveServer, keys: dict[str, str]) -> None:
    """No key, a wrong one and an empty one get the same 401, on every route and for streams."""
    answers = set()
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Basic x"}, {"x-api-key": ""}):
        with keyed_server.http() as http:
            for answer in (
                http.post("/responses", json={"input": "a"}, headers=headers),
                http.post("/responses", json={"input": "a", "stream": True}, headers=headers),
                http.post("/responses", content=b"{broken", headers=headers),
                http.get("/responses/resp_x?stream=true&foo=1", headers=headers),
                http.get("/responses/resp_x", headers=headers),
                http.get("/models", headers=headers),
            ):
                answers.add(check_envelope(answer, 401, "invalid_api_key")["message"])
                assert answer.headers["www-authenticate"] == "Bearer"
    assert len(answers) == 1
    with keyed_server.http() as http:
        assert http.get(keyed_server.url.removesuffix("/v1") + "/healthz").status_code == 200


def test_a_key_works_as_bearer_and_as_x_api_key(keyed_server: LiveServer, keys: dict[str, str]) -> None:
    """Both headers with the same key give access to the same responses."""
    made = keyed_server.client(key=keys["ada"]).responses.create(input="hi", model="smollm2-135m")
    with keyed_server.http() as http:
        answer = http.get(f"/responses/{made.id}", headers={"x-api-key": keys["ada"]})
    assert answer.json()["id"] == made.id


def test_a_project_sees_its_own_responses_only(keyed_server: LiveServer, keys: dict[str, str]) -> None:
    """All keys of a project share; another project gets exactly the answer for an unknown id."""
    ada, ada2, bob = (keyed_server.client(key=keys[name]) for name in ("ada", "ada2", "bob"))
    made = ada.responses.create(input="a secret", model="smollm2-135m")
    assert ada2.responses.retrieve(made.id).id == made.id
    for call in (bob.responses.retrieve, bob.responses.delete, bob.responses.input_items.list):
        with pytest.raises(NotFoundError) as foreign:
            call(made.id)
        unknown = made.id[:-1] + ("0" if made.id[-1] != "0" else "1")
        with pytest.raises(NotFoundError) as missing:
            call(unknown)
        assert str(foreign.value).replace(made.id, "") == str(missing.value).replace(unknown, "")
    with pytest.raises(BadRequestError) as refused:
        bob.responses.create(input="go on", previous_response_id=made.id, model="smollm2-135m")
    assert refused.value.code == "previous_response_not_found"
    assert ada.responses.retrieve(made.id).output_text == "You said: a secret"


def test_a_revoked_or_expired_key_is_refused(keyed_server: LiveServer, keys: dict[str, str]) -> None:
    """At once, with the answer for an unknown key."""
    key = keyed_server.make_key("carol")
    client = keyed_server.client(key=key)
    assert client.models.list()
    for change in (
        "ApiKey.objects.filter(project__name='carol').update(expires_at=now)",
        "ApiKey.objects.filter(project__name='carol').update(expires_at=None, revoked_at=now)",
    ):
        keyed_server.manage(
            "shell",
            "-v",
            "0",
            "-c",
            "from django.utils import timezone; from responses_api.models import ApiKey; now = timezone.now();"
            f"{change}",
        )
        with pytest.raises(AuthenticationError):
            client.models.list()
        with pytest.raises(AuthenticationError):
            client.responses.create(input="hi", model="smollm2-135m", stream=True)


def test_a_key_is_stored_as_a_digest_only(keyed_server: LiveServer, keys: dict[str, str]) -> None:
    """The secret is nowhere in the database; its last use is recorded."""
    shown = keyed_server.manage(
        "shell",
        "-v",
        "0",
        "-c",
        "from responses_api.models import ApiKey; k = ApiKey.objects.get(project__name='bob');"
        "print(k.prefix, k.digest, k.last_used_at)",
    )
    secret = keys["bob"]
    assert secret not in shown
    assert secret.startswith(shown.split()[0])


def test_revoking_a_key_ends_its_answers(keyed_server: LiveServer) -> None:
    """With the next heartbeat streams end in a failure and JSON requests in 401; a job of its project continues."""
    other, key = keyed_server.make_keys("eve", "eve")
    long = {"model": "smollm2-135m", "input": "[[slow: 0.05]][[tokens: 100000]]"}
    with keyed_server.http(key=other) as http:
        job = http.post("/responses", json={**long, "background": True}).json()["id"]

    def stream(method: str, path: str, body: Any = None) -> str:
        with keyed_server.http(key=key) as http:
            return http.request(method, path, json=body, timeout=60).text

    with ThreadPoolExecutor() as threads:
        streamed = threads.submit(stream, "POST", "/responses", {**long, "stream": True})
        whole = threads.submit(stream, "POST", "/responses", long)
        read = threads.submit(stream, "GET", f"/responses/{job}?stream=true")
        time.sleep(2)
        assert not any(answer.done() for answer in (streamed, whole, read))
        keyed_server.manage(
            "shell",
            "-v",
            "0",
            "-c",
            "from responses_api.models import ApiKey\n"
            "from responses_api.services.accounts.create_key import revoke_key\n"
            "revoke_key(key=ApiKey.objects.filter(project__name='eve').latest('pk'))",
        )
        assert '"code":"invalid_api_key"' in whole.result(30)
        assert "response.failed" in streamed.result(30)
        assert '"code":"invalid_api_key"' in read.result(30)
    with keyed_server.http(key=other) as http:
        assert http.get(f"/responses/{job}").json()["status"] == "in_progress"
        # The foreground's slots are free again.
        assert eventually(lambda: http.get("/status").json()["running"] == 1)
        assert http.post(f"/responses/{job}/cancel").json()["status"] == "cancelled"

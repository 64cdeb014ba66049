"""Limits of the store through the SDK: evictions, refusals and a disabled store, on every process."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from openai import APIStatusError, BadRequestError, NotFoundError

from tests.live.client import check_envelope, eventually, metrics, open_request, status
from tests.live.launch import SHAPES, Launch
from tests.live.server import LiveServer

MODEL = "smollm2-135m"
ENTRIES = 3


@pytest.fixture(scope="module", params=SHAPES)
def limited(request: pytest.FixtureRequest, launch: Launch) -> Iterator[LiveServer]:
    """A server with low limits on the store."""
    with launch(
        request.param,
        RESPONSES_STORE_MAX_ENTRIES=str(ENTRIES),
        RESPONSES_STORE_MAX_BYTES="100000",
        RESPONSES_ENTRY_MAX_BYTES="20000",
        RESPONSES_ASSEMBLY_MAX_BYTES="12000",
        RESPONSES_CONVERSATION_STORE_MAX_ENTRIES=str(ENTRIES),
    ) as server:
        yield server


def test_exactly_the_limit_is_stored(limited: LiveServer) -> None:
    """Even when many end at once on all workers."""
    before = status(limited)["store"]

    def create(number: int) -> str:
        client = limited.client(web=number % limited.web)
        return client.responses.create(model=MODEL, input=f"number {number}").id

    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(create, range(24)))
    found = 0
    for response_id in ids:
        try:
            assert limited.client().responses.retrieve(response_id).id == response_id
        except NotFoundError:
            continue
        found += 1
    assert found == ENTRIES

    def is_counted() -> bool:
        # At least: evictions of the tests before may be counted only now.
        store = status(limited, limited.web - 1)["store"]
        return bool(store["evictions"] - before["evictions"] >= 24 + before["entries"] - ENTRIES)

    assert eventually(is_counted), status(limited)
    assert status(limited)["store"]["entries"] == metrics(limited)["mlx_responses_store_entries"] == ENTRIES


def test_a_response_that_is_read_stays(limited: LiveServer) -> None:
    """The least recently used one is evicted; responses that continue it keep its text."""
    client, other = limited.client(), limited.client(web=limited.web - 1)
    first = client.responses.create(model=MODEL, input="the secret is 73")
    second = client.responses.create(model=MODEL, input="go on", previous_response_id=first.id)
    third = client.responses.create(model=MODEL, input="something else")
    other.responses.retrieve(second.id)
    fourth = client.responses.create(model=MODEL, input="[[show-prompt]]", previous_response_id=second.id)
    for response in (second, third, fourth):
        assert other.responses.retrieve(response.id).id == response.id
    with pytest.raises(NotFoundError):
        other.responses.retrieve(first.id)
    with pytest.raises(BadRequestError) as error:
        client.responses.create(model=MODEL, input="go on", previous_response_id=first.id)
    assert error.value.code == "previous_response_not_found"
    assert "the secret is 73" in fourth.output_text


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_too_large_to_store_is_refused(limited: LiveServer, *, stream: bool) -> None:
    """413, streamed or not; except with `store: false`."""
    with limited.http() as http:
        body = {"input": "a" * 21_000, "stream": stream}
        check_envelope(http.post("/responses", json=body), 413, "entry_too_large", param="input")
        assert http.post("/responses", json={**body, "store": False}).status_code == 200


def test_an_answer_too_large_to_store_fails(limited: LiveServer) -> None:
    """The stream says so, and the stored response has no output; a JSON request gets an error."""
    asked: dict[str, Any] = {"model": MODEL, "input": "[[tokens: 19000]]"}
    with limited.client().responses.create(**asked, stream=True) as events:
        *_, closed, _, last = events
    assert last.type == "response.failed"
    assert (closed.type, closed.item.status) == ("response.output_item.done", "incomplete")
    assert last.response.output == []
    assert last.response.usage is not None
    assert last.response.usage.output_tokens > 1000
    kept = limited.client(web=limited.web - 1).responses.retrieve(last.response.id)
    assert (kept.status, kept.output) == ("failed", [])
    assert kept.error is not None
    assert "RESPONSES_ENTRY_MAX_BYTES" in kept.error.message
    with pytest.raises(APIStatusError, match="RESPONSES_ENTRY_MAX_BYTES") as refused:
        limited.client().responses.create(**asked)
    assert refused.value.status_code == 413
    assert refused.value.response.headers["x-should-retry"] == "false"
    with pytest.raises(BadRequestError, match="failed"):
        limited.client().responses.create(model=MODEL, input="go on", previous_response_id=kept.id)


def test_running_responses_may_not_take_the_whole_store(limited: LiveServer) -> None:
    """429 while others run, except with `store: false`; a request that is too large alone is refused for good."""
    body = {"input": "[[slow: 0.05]][[tokens: 2000]]" + "a" * 17_000, "stream": True}
    with limited.http() as http, open_request(limited, stream=True):
        streams = [http.stream("POST", "/responses", json=body) for _ in range(5)]
        try:
            for stream in streams:
                assert stream.__enter__().status_code == 200
            refused = http.post("/responses", json={"input": "b" * 9_000})
            check_envelope(refused, 429, "rate_limit_exceeded")
            assert int(refused.headers["retry-after"]) >= 1
            assert http.post("/responses", json={"input": "b" * 9_000, "store": False}).status_code == 200
        finally:
            for stream in streams:
                stream.__exit__(None, None, None)
    assert eventually(lambda: status(limited)["running"] == 0), status(limited)


def test_a_history_beyond_the_assembly_budget_is_not_read(limited: LiveServer) -> None:
    """413 before anything is queued, for generating, counting and compacting; the history is never cut."""
    client = limited.client()
    first = client.responses.create(model=MODEL, input="[[say: ok]]" + "a" * 13_000)
    for call in (client.responses.create, client.responses.input_tokens.count, client.responses.compact):
        with pytest.raises(APIStatusError) as error:
            call(model=MODEL, input="go on", previous_response_id=first.id)
        assert error.value.status_code == 413
        assert error.value.code == "request_too_large"
        assert "RESPONSES_ASSEMBLY_MAX_BYTES" in error.value.message


def test_exactly_the_limit_of_conversations_is_stored(limited: LiveServer) -> None:
    """The least recently used one is evicted."""
    client, other = limited.client(), limited.client(web=limited.web - 1)
    first, second, third = (client.conversations.create().id for _ in range(3))
    other.conversations.retrieve(first)
    client.responses.create(model=MODEL, input="hi", conversation=second)
    client.conversations.create()
    with pytest.raises(NotFoundError):
        other.conversations.retrieve(third)
    assert len(other.conversations.items.list(second).data) == 2
    assert other.conversations.retrieve(first).id == first


@pytest.fixture
def off(launch: Launch) -> Iterator[LiveServer]:
    """A server without a store."""
    with launch("embedded", RESPONSES_STORE_MAX_ENTRIES="0", RESPONSES_CONVERSATION_STORE_MAX_ENTRIES="0") as server:
        yield server


def test_a_server_without_a_store(off: LiveServer) -> None:
    """It generates; requests that need a store are 400 and name the setting."""
    client = off.client()
    made = client.responses.create(model=MODEL, input="hi")
    assert made.output_text == "You said: hi"
    assert made.to_dict()["store"] is False
    with client.responses.create(model=MODEL, input="hi", stream=True) as events:
        assert list(events)[-1].type == "response.completed"
    calls: list[Any] = [
        lambda: client.responses.retrieve(made.id),
        lambda: client.responses.delete(made.id),
        lambda: client.responses.input_items.list(made.id),
        lambda: client.responses.create(model=MODEL, input="hi", previous_response_id=made.id),
        lambda: client.responses.create(model=MODEL, input="hi", previous_response_id=made.id, stream=True),
        lambda: client.responses.input_tokens.count(model=MODEL, input="hi", previous_response_id=made.id),
        lambda: client.responses.compact(model=MODEL, input="hi", previous_response_id=made.id),
        lambda: client.responses.create(model=MODEL, input="hi", store=True),
        lambda: client.conversations.create(),
        lambda: client.conversations.retrieve("conv_1"),
        lambda: client.conversations.update("conv_1", metadata={}),
        lambda: client.conversations.delete("conv_1"),
        lambda: client.conversations.items.list("conv_1"),
        lambda: client.conversations.items.create("conv_1", items=[{"role": "user", "content": "hi"}]),
        lambda: client.conversations.items.retrieve("msg_1", conversation_id="conv_1"),
        lambda: client.conversations.items.delete("msg_1", conversation_id="conv_1"),
        lambda: client.responses.create(model=MODEL, input="hi", conversation="conv_1"),
    ]
    for call in calls:
        with pytest.raises(BadRequestError, match="STORE_MAX_ENTRIES"):
            call()
    assert status(off)["store"]["entries"] == 0
    assert status(off)["store"]["bytes"] == 0


@pytest.fixture
def private(launch: Launch) -> Iterator[LiveServer]:
    with launch("embedded", RESPONSES_ISOLATION="key") as server:
        yield server


def test_keys_of_a_project_share_nothing_with_isolation_by_key(private: LiveServer) -> None:
    """Responses, conversations and items: the other key gets what an unknown id gets."""
    owner, other = (private.client(key=key) for key in private.make_keys("team", "team"))
    made = owner.responses.create(model=MODEL, input="secret")
    talk = owner.conversations.create(items=[{"type": "message", "role": "user", "content": "secret"}]).id
    item = owner.responses.input_items.list(made.id).data[0]
    assert item.id is not None

    def answer(name: str, known: str, call: Any) -> None:
        answers = []
        for value in (known, known[:-1] + ("0" if known[-1] != "0" else "1")):
            with pytest.raises(APIStatusError) as error:
                call(value)
            answers.append(error.value.response.text.replace(value, ""))
        assert answers[0] == answers[1], name

    def ask(client: Any, **options: Any) -> Any:
        return client.responses.create(**{"model": MODEL, "input": "hi", **options})

    answer("get", made.id, other.responses.retrieve)
    answer("delete", made.id, other.responses.delete)
    answer("input items", made.id, other.responses.input_items.list)
    answer("previous", made.id, lambda value: ask(other, previous_response_id=value))
    answer("conversation", talk, lambda value: ask(other, conversation=value))
    answer("get conversation", talk, other.conversations.retrieve)
    answer("items", talk, other.conversations.items.list)
    answer("delete conversation", talk, other.conversations.delete)
    answer("reference", item.id, lambda value: ask(other, input=[{"type": "item_reference", "id": value}]))
    assert ask(owner, previous_response_id=made.id).output_text

"""openai-python: all methods for the endpoints of this server.

`tests/live` checks each in more detail and in both shapes. These tests cover whole life cycles, two of them with a
real model too.
"""

from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from tests.live.server import LiveServer

pytestmark = pytest.mark.timeout(600)  # a busy machine must not fail the tests

MODEL = "smollm2-135m"
FRANCE = "What is the capital of France?"


@pytest.fixture
def client(scripted: LiveServer) -> OpenAI:
    return scripted.client()


def text(item: Any) -> str:
    """The text of a listed message."""
    return "".join(part.text for part in item.content)


def plain(response: Any) -> Any:
    """A response as on the wire, without the parsed values that the stream helper adds."""
    sent = response.to_dict()
    for item in sent["output"]:
        for part in item.get("content", ()):
            part.pop("parsed", None)
    return sent


def test_the_life_of_a_response(client: OpenAI) -> None:
    """Created, retrieved, continued, listed and deleted."""
    made = client.responses.create(model=MODEL, input=FRANCE, metadata={"topic": "towns"}, max_output_tokens=6)
    assert made.output_text
    assert client.responses.retrieve(made.id) == made
    second = client.responses.create(model=MODEL, input="Say more.", previous_response_id=made.id, max_output_tokens=6)
    listed = list(client.responses.input_items.list(second.id, order="asc", limit=1))
    assert [text(item) for item in listed] == [FRANCE, made.output_text, "Say more."]
    assert listed[1].id == made.output[0].id
    client.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)
    assert client.responses.retrieve(second.id) == second


def test_a_stream_and_its_helper(server: LiveServer) -> None:
    """Events are numbered. The responses of the last event, of the helper and of the store are equal."""
    client = server.client().with_options(timeout=120)
    events = list(client.responses.create(model=MODEL, input=FRANCE, temperature=0, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].type == "response.completed"
    assert client.responses.retrieve(events[-1].response.id) == events[-1].response
    with client.responses.stream(model=MODEL, input=FRANCE, temperature=0) as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert "".join(deltas) == final.output_text == events[-1].response.output_text
    assert plain(client.responses.retrieve(final.id)) == plain(final)


def test_a_stream_that_is_abandoned(client: OpenAI) -> None:
    """Leaving the helper's block early ends the generation, and nothing is stored."""
    with client.responses.stream(model=MODEL, input="[[slow: 0.05]] [[tokens: 1000]] Tell me of the sea.") as stream:
        created = next(iter(stream))
    assert created.type == "response.created"
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(created.response.id)
    assert client.responses.create(model=MODEL, input=FRANCE, max_output_tokens=2).usage is not None


def test_input_tokens_equal_the_later_usage(client: OpenAI) -> None:
    """For a text, for a continued response, and in a conversation."""
    conversation = client.conversations.create(items=[{"role": "user", "content": "My name is Ada."}])
    first = client.responses.create(model=MODEL, input=FRANCE, instructions="Be brief.", max_output_tokens=2)
    asked: list[dict[str, Any]] = [
        {"input": FRANCE, "instructions": "Be brief."},
        {"input": "Say more.", "previous_response_id": first.id},
        {"input": [{"role": "user", "content": "Who am I?"}], "conversation": conversation.id},
    ]
    for request in asked:
        counted = client.responses.input_tokens.count(model=MODEL, **request)
        assert counted.object == "response.input_tokens"
        usage = client.responses.create(model=MODEL, max_output_tokens=2, **request).usage
        assert usage is not None
        assert counted.input_tokens == usage.input_tokens


def test_the_life_of_a_conversation(server: LiveServer) -> None:
    """Every method of conversations and their items, with a turn between."""
    client = server.client().with_options(timeout=120)
    made = client.conversations.create(metadata={"topic": "towns"}, items=[{"role": "user", "content": "Hello."}])
    assert client.conversations.retrieve(made.id) == made
    changed = client.conversations.update(made.id, metadata={"topic": "travel"})
    assert changed.metadata == {"topic": "travel"}
    added = client.conversations.items.create(
        made.id, items=[{"role": "user", "content": str(number)} for number in range(20)]
    )
    turn = client.responses.create(model=MODEL, input=FRANCE, conversation=made.id, max_output_tokens=6)
    assert turn.conversation is not None
    assert turn.conversation.id == made.id
    expected = ["Hello.", *map(str, range(20)), FRANCE, turn.output_text]
    assert [text(item) for item in client.conversations.items.list(made.id, order="asc", limit=4)] == expected
    assert [text(item) for item in client.conversations.items.list(made.id)] == expected[::-1]
    first = str(added.data[0].id)
    assert client.conversations.items.retrieve(first, conversation_id=made.id) == added.data[0]
    assert client.conversations.items.delete(first, conversation_id=made.id) == changed
    assert len(list(client.conversations.items.list(made.id))) == len(expected) - 1
    assert client.conversations.delete(made.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.conversations.retrieve(made.id)
    assert client.responses.retrieve(turn.id) == turn


async def test_the_asynchronous_client(scripted: LiveServer) -> None:
    """A stream, its helper, and lists with automatic paging."""
    async with AsyncOpenAI(base_url=scripted.url, api_key="any", max_retries=0, timeout=120) as client:
        async with client.responses.stream(model=MODEL, input=FRANCE, temperature=0) as stream:
            first = await stream.get_final_response()
        second = await client.responses.create(
            model=MODEL, input="Say more.", previous_response_id=first.id, max_output_tokens=2
        )
        listed = [text(item) async for item in client.responses.input_items.list(second.id, order="asc", limit=1)]
        assert listed == [FRANCE, first.output_text, "Say more."]


def test_a_history_is_compacted(client: OpenAI) -> None:
    """Its output replaces the history as the next input, with the same text, and in token counts."""
    first = client.responses.create(model=MODEL, input="My name is Ada.")
    compacted = client.responses.compact(model=MODEL, previous_response_id=first.id)
    assert compacted.object == "response.compaction"
    assert compacted.output[-1].type == "compaction"
    replayed: list[Any] = [item.to_dict(mode="json", warnings=False) for item in compacted.output]
    asked = [*replayed, {"role": "user", "content": "[[show-prompt]]"}]
    shown = client.responses.create(model=MODEL, input=asked).output_text
    assert (
        shown
        == client.responses.create(model=MODEL, input="[[show-prompt]]", previous_response_id=first.id).output_text
    )
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.compact(model=MODEL, previous_response_id="resp_unknown")
    assert refused.value.code == "previous_response_not_found"


def test_models(client: OpenAI) -> None:
    """What is listed can be retrieved and used."""
    models = list(client.models.list())
    assert models
    for model in models:
        assert client.models.retrieve(model.id) == model
        assert client.responses.create(model=model.id, input=FRANCE, max_output_tokens=1).output_text


def test_errors_are_exceptions_of_the_sdk(scripted: LiveServer) -> None:
    """Each status has its class, and the message is a sentence."""
    client = scripted.client()
    create = client.responses.create
    with pytest.raises(openai.BadRequestError) as bad:
        create(model=MODEL, input="x", temperature=9)
    assert bad.value.param == "temperature"
    with pytest.raises(openai.NotFoundError) as unknown:
        create(model="no-such-model", input="x")
    assert (unknown.value.code, unknown.value.type) == ("model_not_found", "invalid_request_error")
    with pytest.raises(openai.InternalServerError) as broken:
        create(model=MODEL, input="[[fail: It is broken.]]")
    assert broken.value.body["message"] == "It is broken."  # type: ignore[index]
    with pytest.raises(openai.BadRequestError) as chained:
        client.responses.stream(model=MODEL, input="x", previous_response_id="resp_unknown").__enter__()
    assert chained.value.code == "previous_response_not_found"
    for failure in (bad, unknown, chained):
        assert failure.value.request_id is not None
        assert str(failure.value.body["message"]).endswith(".")  # type: ignore[index]

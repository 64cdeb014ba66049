"""langchain-openai against a live server, whose address is in BASE_URL."""

import os
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from openai import BadRequestError, NotFoundError, OpenAI

URL = os.environ["BASE_URL"]


@pytest.fixture(scope="module")
def stored():
    """The SDK, to read what the server has stored."""
    with OpenAI(base_url=URL, api_key="any", max_retries=0, timeout=120) as client:
        yield client.responses


def chat(model: str = "smollm2-135m", max_tokens: int | None = 6, **options: Any) -> ChatOpenAI:
    """LangChain's model over the Responses API."""
    return ChatOpenAI(
        base_url=URL,
        api_key="any",
        model=model,
        use_responses_api=True,
        max_tokens=max_tokens,
        max_retries=0,
        timeout=120,
        **options,
    )


def response_id(message: BaseMessage) -> str:
    return str(message.response_metadata["id"])


def test_a_message_whole(stored: Any) -> None:
    """Text, item id, counts and model are those of the stored response."""
    answer = chat().invoke([SystemMessage("Be kind."), HumanMessage("Good morning!")])
    response = stored.retrieve(response_id(answer))
    assert answer.text
    assert response.output_text == answer.text
    assert answer.content[0]["id"] == response.output[0].id
    assert answer.usage_metadata is not None
    assert answer.usage_metadata["input_tokens"] == response.usage.input_tokens
    assert answer.usage_metadata["output_tokens"] == response.usage.output_tokens
    assert answer.response_metadata["status"] == response.status
    roles = [(item.role, item.content[0].text) for item in stored.input_items.list(response.id, order="asc")]
    assert roles == [("system", "Be kind."), ("user", "Good morning!")]


def test_a_stream_is_what_is_stored(stored: Any) -> None:
    """The chunks add up to a message that equals the stored response."""
    chunks = list(chat().stream("What is the capital of France?"))
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    response = stored.retrieve(response_id(whole))
    assert whole.text
    assert whole.text == response.output_text
    assert whole.usage_metadata is not None
    assert whole.usage_metadata["total_tokens"] == response.usage.total_tokens


def test_a_stream_comes_bit_by_bit() -> None:
    """Slow tokens come one by one."""
    chunks = chat().stream("[[slow: 0.05]] [[say: one two three]]")
    assert [chunk.text for chunk in chunks if chunk.text] == ["one", " two", " three"]


async def test_async_calls_and_batches(stored: Any) -> None:
    """Three at once, then a stream: all are stored with their text."""
    answers = await chat().abatch(["one", "two", "three"])
    assert len({response_id(answer) for answer in answers}) == 3
    for answer in answers:
        assert stored.retrieve(response_id(answer)).output_text == answer.text
    assert "".join([chunk.text async for chunk in chat().astream("four")])


@pytest.mark.parametrize("streamed", [False, True])
def test_use_previous_response_id(stored: Any, streamed: bool) -> None:
    """The whole history is given, and only new messages are sent: each response continues the one before."""
    model = chat(use_previous_response_id=True, streaming=streamed)
    messages: list[BaseMessage] = [HumanMessage("My name is Ada.")]
    for said in ("I like sums.", "And rhymes."):
        messages += [model.invoke(messages), HumanMessage(said)]
    last = model.invoke(messages)
    answers = [message for message in messages if isinstance(message, AIMessage)]
    assert stored.retrieve(response_id(last)).previous_response_id == response_id(answers[1])
    assert stored.retrieve(response_id(answers[1])).previous_response_id == response_id(answers[0])
    listed = [item.content[0].text for item in stored.input_items.list(response_id(last), order="asc", limit=2)]
    assert listed == [message.text for message in messages]


@pytest.mark.parametrize("chained", [False, True])
def test_the_model_sees_the_history(stored: Any, chained: bool) -> None:
    """By reference and by replay the prompt is the same."""
    model = chat(max_tokens=None, use_previous_response_id=chained)
    messages: list[BaseMessage] = [HumanMessage("My name is Ada.")]
    messages += [model.invoke(messages), HumanMessage("[[show-prompt]]")]
    answer = model.invoke(messages)
    turns = [("user", "My name is Ada."), ("assistant", "You said: My name is Ada."), ("user", "[[show-prompt]]")]
    place = 0
    for role, said in turns:
        place = answer.text.index(role, place)
        place = answer.text.index(said, place)
    previous = stored.retrieve(response_id(answer)).previous_response_id
    assert previous == (response_id(messages[1]) if chained else None)


def test_an_answer_that_is_cut(stored: Any) -> None:
    """It is marked as incomplete, and can be continued."""
    cut = chat(max_tokens=3).invoke("Count to a hundred, please.")
    assert cut.response_metadata["status"] == "incomplete"
    assert cut.response_metadata["incomplete_details"]["reason"] == "max_output_tokens"
    more = chat(use_previous_response_id=True).invoke([HumanMessage("Count."), cut, HumanMessage("Go on.")])
    assert stored.retrieve(response_id(more)).previous_response_id == response_id(cut)


@pytest.mark.parametrize("streamed", [False, True])
def test_errors_are_the_sdk_s_own(streamed: bool) -> None:
    """An unknown model or response, and a prompt that is too long, are the SDK's exceptions with code and parameter."""
    with pytest.raises(NotFoundError) as model:
        chat("no-such-model", streaming=streamed).invoke("x")
    assert model.value.code == "model_not_found"
    with pytest.raises(BadRequestError) as response:
        chat(streaming=streamed).invoke("x", previous_response_id="resp_unknown")
    assert response.value.code == "previous_response_not_found"
    with pytest.raises(BadRequestError) as length:
        chat(streaming=streamed).invoke("word " * 200_000)
    assert length.value.code == "context_length_exceeded"

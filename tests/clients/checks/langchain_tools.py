"""langchain-openai with tools and reasoning against a live server, whose address is in BASE_URL."""

import os
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel


class Answer(BaseModel):
    """An answer."""

    total: int
    words: list[str]


@tool
def find(name: str) -> str:
    """Looks a person up, and has the model call add next."""
    return f'{name} found. [[call: add {{"left": 2, "right": 40}}]]'


@tool
def add(left: int, right: int) -> str:
    """Adds, and has the model say the sum."""
    return f"[[say: It is {left + right}.]]"


TOOLS = {"find": find, "add": add}


def chat(**options: Any) -> ChatOpenAI:
    """LangChain's model over the Responses API."""
    return ChatOpenAI(
        base_url=os.environ["BASE_URL"],
        api_key="any",
        model="smollm2-135m",
        use_responses_api=True,
        max_tokens=2000,
        max_retries=0,
        timeout=120,
        **options,
    )


def results(answer: AIMessage) -> list[BaseMessage]:
    """The results of the called tools."""
    return [TOOLS[call["name"]].invoke({**call, "type": "tool_call"}) for call in answer.tool_calls]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "way",
    [{}, {"use_previous_response_id": True}, {"store": False, "include": ["reasoning.encrypted_content"]}],
    ids=["replayed", "chained", "unstored"],
)
def test_a_loop_with_two_tools(way: dict[str, Any], streamed: bool) -> None:
    model = chat(streaming=streamed, reasoning={"effort": "low"}, **way).bind_tools(list(TOOLS.values()))
    messages: list[BaseMessage] = [HumanMessage('[[think: Who?]][[say: Let me see.]][[call: find {"name": "Ada"}]]')]
    called: list[Any] = []
    while True:
        answer = model.invoke(messages)
        messages.append(answer)
        if not answer.tool_calls:
            break
        called += [(call["name"], call["args"]) for call in answer.tool_calls]
        messages += results(answer)
    assert called == [("find", {"name": "Ada"}), ("add", {"left": 2, "right": 40})]
    assert answer.text == "It is 42."
    first = messages[1]
    assert first.text == "Let me see."
    assert isinstance(first, AIMessage)
    assert first.usage_metadata is not None
    assert first.usage_metadata["output_token_details"]["reasoning"] > 0


@pytest.mark.parametrize("streamed", [False, True])
def test_parallel_calls(streamed: bool) -> None:
    """Both come with different ids, and accept their results in any order."""
    text = '[[call: add {"left": 1, "right": 2}]][[call: find {"name": "Ada"}]]'
    model = chat(streaming=streamed)
    answer = model.bind_tools(list(TOOLS.values())).invoke(text)
    first, second = answer.tool_calls
    assert first["id"] != second["id"]
    done = [ToolMessage("[[say: Done.]]", tool_call_id=call["id"]) for call in (second, first)]
    assert model.invoke([HumanMessage(text), answer, *done]).text == "Done.Done."
    one = model.bind_tools(list(TOOLS.values()), parallel_tool_calls=False).invoke(text)
    assert [call["name"] for call in one.tool_calls] == ["add"]


@pytest.mark.parametrize("choice", ["any", "add"])
def test_a_call_that_must_be(choice: str) -> None:
    answer = chat().bind_tools([add], tool_choice=choice).invoke("[[say: I would rather not.]]")
    (call,) = answer.tool_calls
    assert (call["name"], {type(value) for value in call["args"].values()}) == ("add", {int})


@pytest.mark.parametrize("method", ["function_calling", "json_schema", "json_mode"])
def test_structured_output(method: Any) -> None:
    said = '[[say: {"total": 3, "words": ["a"]}]]' if method == "json_mode" else "[[say: I would rather talk.]]"
    answer = chat().with_structured_output(Answer, method=method).invoke(said)
    assert isinstance(answer, Answer)

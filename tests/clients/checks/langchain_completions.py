"""langchain-openai over Chat Completions, its default, against a live server, whose address is in BASE_URL."""

import os
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
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
    return ChatOpenAI(
        base_url=os.environ["BASE_URL"], api_key="any", model="smollm2-135m", max_retries=0, timeout=120, **options
    )


@pytest.mark.parametrize("streamed", [False, True])
def test_a_message(streamed: bool) -> None:
    """With its counts, also at the end of a stream."""
    answer = chat(streaming=streamed, stream_usage=True).invoke([SystemMessage("Be kind."), HumanMessage("Hi")])
    assert answer.text == "You said: Hi"
    assert answer.usage_metadata is not None
    assert answer.usage_metadata["output_tokens"] > 0
    assert answer.response_metadata["finish_reason"] == "stop"


@pytest.mark.parametrize("streamed", [False, True])
def test_a_loop_with_two_tools(streamed: bool) -> None:
    model = chat(streaming=streamed, max_tokens=2000).bind_tools(list(TOOLS.values()))
    messages: list[BaseMessage] = [HumanMessage('[[think: Who?]][[say: Let me see.]][[call: find {"name": "Ada"}]]')]
    called: list[Any] = []
    while True:
        answer = model.invoke(messages)
        messages.append(answer)
        if not answer.tool_calls:
            break
        called += [(call["name"], call["args"]) for call in answer.tool_calls]
        messages += [TOOLS[call["name"]].invoke({**call, "type": "tool_call"}) for call in answer.tool_calls]
    assert called == [("find", {"name": "Ada"}), ("add", {"left": 2, "right": 40})]
    assert answer.text == "It is 42."
    assert messages[1].text == "Let me see."


@pytest.mark.parametrize("method", ["function_calling", "json_schema", "json_mode"])
def test_structured_output(method: Any) -> None:
    said = '[[say: {"total": 3, "words": ["a"]}]]' if method == "json_mode" else "[[say: I would rather talk.]]"
    answer = chat().with_structured_output(Answer, method=method).invoke(said)
    assert isinstance(answer, Answer)

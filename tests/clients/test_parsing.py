"""Structured output of openai-python: twenty kinds of pydantic models, as formats and as tools."""

import json
from typing import Any

import openai
import pytest
from openai import OpenAI
from pydantic import BaseModel

from tests.live.generation.test_structured_output import PYDANTIC, Person
from tests.live.server import LiveServer

MODEL = "smollm2-135m"
ANY_NUMBER = 2000
"""Enough tokens for any answer here; an endless one would be cut, and fail."""

pytestmark = pytest.mark.timeout(600)  # a busy machine must not fail the tests


@pytest.fixture
def client(scripted: LiveServer) -> OpenAI:
    return scripted.client()


def tool(kind: type[BaseModel], name: str = "answer") -> Any:
    """The tool that the SDK makes from a model."""
    return openai.pydantic_function_tool(kind, name=name, description="Take the answer.")


@pytest.mark.parametrize("kind", PYDANTIC, ids=lambda kind: kind.__name__)
def test_models_are_formats(client: OpenAI, kind: type[BaseModel]) -> None:
    """With a tool too, streamed and not: the text is parsed as the model's object."""
    asked: dict[str, Any] = {
        "model": MODEL,
        "input": "[[say: I have nothing to say.]]",
        "text_format": kind,
        "tools": [tool(Person)],
        "max_output_tokens": ANY_NUMBER,
    }
    whole = client.responses.parse(**asked)
    assert isinstance(whole.output_parsed, kind)
    with client.responses.stream(**asked) as stream:
        streamed = stream.get_final_response()
    assert streamed.output_parsed == whole.output_parsed


@pytest.mark.parametrize("said", ["{}", '{"x": [1, "two"]}', '{"text": "One.", "tags": ["a"], "value": 7}'])
@pytest.mark.parametrize("kind", PYDANTIC, ids=lambda kind: kind.__name__)
def test_models_are_tools(client: OpenAI, kind: type[BaseModel], said: str) -> None:
    """Whatever arguments the script gives, the SDK parses them as the model's object."""
    asked: dict[str, Any] = {"model": MODEL, "tools": [tool(kind)], "max_output_tokens": ANY_NUMBER}
    response = client.responses.parse(input=f"[[call: answer {said}]]", **asked)
    calls = [item for item in response.output if item.type == "function_call"]
    assert calls
    for made in calls:
        assert isinstance(made.parsed_arguments, kind)


@pytest.mark.parametrize("kind", PYDANTIC, ids=lambda kind: kind.__name__)
def test_models_are_chosen_tools(client: OpenAI, kind: type[BaseModel]) -> None:
    """Even where the script gives text."""
    choice: Any = {"type": "function", "name": "answer"}
    with client.responses.stream(
        model=MODEL,
        input="[[say: I would rather talk.]]",
        tools=[tool(kind)],
        tool_choice=choice,
        max_output_tokens=ANY_NUMBER,
    ) as stream:
        (made,) = stream.get_final_response().output
    assert made.type == "function_call"
    assert isinstance(made.parsed_arguments, kind)


def test_valid_arguments_come_unchanged(client: OpenAI) -> None:
    person = {"name": "Zoë", "address": {"street": "Main St", "number": None}}
    said = json.dumps(person, ensure_ascii=False)
    response = client.responses.parse(model=MODEL, input=f"[[call: answer {said}]]", tools=[tool(Person)])
    (made,) = response.output
    assert made.type == "function_call"
    assert made.parsed_arguments == Person.model_validate(person)

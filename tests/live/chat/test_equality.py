"""Every chat completion equals the response that it maps to, token for token, whole and streamed."""

from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.live.generation.tool_calls import call
from tests.live.server import LiveServer

from .chats import ask, function, user

REQUESTS = 50
WORDS = ("One", "two", "three", "Zürich", "🌍", "12.5", "and", "so on")
TOOLS = [function("find", name="string"), function("add", left="integer", right="integer")]
GREP: Any = {"type": "custom", "custom": {"name": "grep"}}
SCHEMA: Any = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "integer"}, "maxItems": 2}},
    "required": ["name", "tags"],
    "additionalProperties": False,
}
FORMATS: Any = (
    {"type": "json_object"},
    {"type": "json_schema", "json_schema": {"name": "thing", "schema": SCHEMA, "strict": True}},
)


def sentence(random: Random) -> str:
    return " ".join(random.choices(WORDS, k=random.randint(1, 6)))


def made_call(random: Random) -> str:
    """The directive for a call."""
    name, arguments = random.choice([("find", {"name": sentence(random)}), ("add", {"left": 1, "right": -2})])
    return call(name, arguments)


def history(random: Random) -> list[Any]:
    """Earlier messages, with calls whose ids are used again."""
    messages: list[Any] = []
    if random.random() < 0.5:
        messages.append({"role": random.choice(["system", "developer"]), "content": sentence(random)})
    for _ in range(random.randint(0, 2)):
        parts = [{"type": "text", "text": sentence(random)} for _ in range(random.randint(1, 2))]
        messages += [user(random.choice([sentence(random), parts]))]
        answer: Any = {"role": "assistant", "content": random.choice([sentence(random), ""])}
        if random.random() < 0.5:
            answer["reasoning_content"] = sentence(random)
        outputs = []
        for number in range(random.randint(0, 2)):
            name, arguments = random.choice([("find", '{"name": "Ada"}'), ("add", "")])
            made = {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
            answer.setdefault("tool_calls", []).append(made)
            outputs.append({"role": "tool", "tool_call_id": made["id"], "content": sentence(random)})
        random.shuffle(outputs)
        messages += [answer, *outputs]
    return messages


def request(random: Random) -> tuple[str, list[Any], dict[str, Any]]:
    """A kind of request, its messages and its options."""
    kind = random.choice(["text", "stop", "tools", "forced", "schema", "cut"])
    options: dict[str, Any] = {"temperature": 0, "max_completion_tokens": 200, "seed": random.randint(0, 99)}
    said = f"[[say: {sentence(random)}]]"
    if random.random() < 0.5:
        options |= {"logprobs": True, "top_logprobs": random.choice([0, 3])}
    if random.random() < 0.3:
        said = f"[[think: {sentence(random)}]]{said}"
    match kind:
        case "stop":
            options["stop"] = random.choice(["two", [" and", "Z"]])
        case "tools":
            options |= {"tools": [*TOOLS, GREP], "parallel_tool_calls": random.random() < 0.5}
            said += made_call(random) + random.choice([made_call(random), call("grep", {"input": "a.*"}), ""])
        case "forced":
            chosen = {"type": "function", "function": {"name": "find"}}
            allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [chosen]}}
            options |= {"tools": TOOLS, "tool_choice": random.choice(["required", chosen, allowed])}
        case "schema":
            options["response_format"] = random.choice(FORMATS)
        case "cut":
            options["max_completion_tokens"] = random.randint(1, 4)
    return kind, [*history(random), user(said)], options


@pytest.mark.parametrize("server", ["embedded"], indirect=True)
def test_random_requests(server: LiveServer) -> None:
    """With tools, schemas, stops and log-probabilities. The same requests every time."""
    kinds, ends = Counter[str](), Counter[str]()
    for number in range(REQUESTS):
        kind, messages, options = request(Random(number))
        completion = ask(server, *messages, **options)
        kinds[kind] += 1
        ends[completion.choices[0].finish_reason] += 1
    assert len(kinds) == 6
    assert set(ends) == {"stop", "length", "tool_calls"}

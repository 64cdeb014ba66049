"""Background jobs with known answers, and the checks of their streams and responses."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.streaming.streams import Events, check_grammar, check_items, fold

MODEL = "smollm2-135m"
TERMINAL = ("response.completed", "response.incomplete", "response.failed")
TOOL = {
    "type": "function",
    "name": "look_up",
    "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    "strict": False,
}
SENTENCE = "L'été à Orléans 🌞, le café ☕️ et la famille 👩‍👩‍👧: voilà. "


@dataclass(frozen=True, slots=True)
class ScriptedJob:
    """A request and its whole answer."""

    input: str
    text: str = ""
    thought: str = ""
    calls: tuple[str, ...] = ()
    """The arguments `place` of the calls, in order."""

    @property
    def payload(self) -> dict[str, Any]:
        payload: dict[str, Any] = {"model": MODEL, "input": self.input, "background": True}
        return payload | {"tools": [TOOL]} if self.calls else payload


def token_text(count: int) -> str:
    """The text of `[[tokens: N]]`."""
    return " ".join(str(number) for number in range(1, count + 1))


def make_job(number: int, rng: random.Random, *, tokens: int) -> ScriptedJob:
    """A job of one of several kinds, with about ``tokens`` tokens at a random pace."""
    slow = f"[[slow: {rng.uniform(0.015, 0.04):.3f}]]"
    count = rng.randint(tokens // 2, tokens * 3 // 2)
    match number % 5:
        case 0:
            return ScriptedJob(f"[[tokens: {count}]]{slow}", token_text(count))
        case 1:
            thought = SENTENCE * 2 + f"number {number}."
            return ScriptedJob(f"[[think: {thought}]][[tokens: {count}]]{slow}", token_text(count), thought)
        case 2:
            said = (SENTENCE * (1 + count // 40)).strip()
            return ScriptedJob(f"[[say: {said}]]{slow}", said)
        case 3:
            places = tuple(f"Orléans {index} 🌞" for index in range(1 + number % 3))
            calls = "".join(f"[[call: look_up {json.dumps({'place': place})}]]" for place in places)
            return ScriptedJob(f"[[tokens: {count}]]{calls}{slow}", token_text(count), calls=places)
        case _:
            said = f"Été {number} 🌞: "
            return ScriptedJob(f"[[say: {said}.]][[tokens: {count}]]{slow}", f"{said}.{token_text(count)}")


@dataclass(slots=True)
class ObservedJob:
    """A job and the events that its readers received, one after the other."""

    job: ScriptedJob
    id: str = ""
    events: Events = field(default_factory=list)
    disconnects: int = 0
    """How often a reader disconnected by itself."""
    breaks: int = 0
    """How often a stream was refused, or ended before the job."""
    errors: list[str] = field(default_factory=list)
    is_abandoned: bool = False
    """Whether an error makes further reading useless."""
    seconds: float = 0.0

    @property
    def has_ended(self) -> bool:
        if not self.events:
            return False
        last = self.events[-1]
        # Any other `error` is followed by `response.failed`.
        return last["type"] in TERMINAL or (last["type"], last.get("code")) == ("error", "response_cancelled")

    @property
    def is_finished(self) -> bool:
        return self.is_abandoned or self.has_ended

    def abandon(self, error: str) -> None:
        """Record an error after which nothing more is read."""
        self.errors.append(error)
        self.is_abandoned = True

    def add(self, event: dict[str, Any]) -> None:
        """Add the next event. Its number must follow that of the last one."""
        number = event.get("sequence_number")
        if self.has_ended:
            self.abandon(f"{event['type']} {number} after the end")
        elif number != len(self.events):
            self.abandon(f"{event['type']} has number {number}, expected {len(self.events)}")
        self.events.append(event)


def answer_errors(job: ScriptedJob, response: dict[str, Any]) -> list[str]:
    """The differences between the response of a finished job and its script."""
    if response["status"] != "completed":
        return [f"is {response['status']}: {response['error'] or response['incomplete_details']}"]
    text = "".join(part["text"] for item in response["output"] if item["type"] == "message" for part in item["content"])
    thought = "".join(
        part["text"] for item in response["output"] if item["type"] == "reasoning" for part in item["content"]
    )
    calls = tuple(
        json.loads(item["arguments"])["place"] for item in response["output"] if item["type"] == "function_call"
    )
    errors = []
    for name, actual, expected in (
        ("text", text, job.text),
        ("thought", thought, job.thought),
        ("calls", calls, job.calls),
    ):
        if actual != expected:
            errors.append(f"its {name} differs: {first_difference(actual, expected)}")
    return errors


def first_difference(actual: Any, expected: Any) -> str:
    """Two values that differ; of texts, the parts around their first difference."""
    if not isinstance(actual, str):
        return f"{actual!r}, expected {expected!r}"
    index = common_length(actual, expected)
    start = max(0, index - 10)
    return f"at {index}: {actual[start : index + 30]!r}, expected {expected[start : index + 30]!r}"


def common_length(left: Sequence[Any], right: Sequence[Any]) -> int:
    """The number of items that two sequences have in common at their beginning."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(left), len(right)))


def stream_errors(events: Events, stored: dict[str, Any], replayed: Events) -> list[str]:
    """The errors of a whole stream: in its form, or compared with the stored response or the stream read again."""
    errors = []
    for name, check in (("the grammar", check_grammar), ("the rules of items", check_items)):
        try:
            check(events)
        except AssertionError as error:
            errors.append(f"the stream violates {name}: {' '.join(str(error).split())[:200]}")
    if events != replayed:
        index = common_length(events, replayed)
        errors.append(
            f"read again, the stream has {len(replayed)} events instead of {len(events)} and differs at {index}: "
            f"{replayed[index : index + 1]} instead of {events[index : index + 1]}"[:500]
        )
    if events[-1].get("response", stored) != stored:
        errors.append("the response of the last event is not the stored one")
    if not errors and events[-1]["type"] in TERMINAL:
        try:
            if fold(events)["output"] != stored["output"]:
                errors.append("the events add up to another output than the stored one")
        except AssertionError as error:
            errors.append(f"the SDK's accumulator differs: {' '.join(str(error).split())[:200]}")
    return errors

"""Background jobs whose answers are known beforehand, and what must hold of each when it is over."""

import json
import random
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
class Work:
    """A request and its whole answer."""

    input: str
    text: str = ""
    thought: str = ""
    calls: tuple[str, ...] = ()
    """The places looked up, in order."""

    @property
    def payload(self) -> dict[str, Any]:
        payload: dict[str, Any] = {"model": MODEL, "input": self.input, "background": True}
        return payload | {"tools": [TOOL]} if self.calls else payload


def counted(count: int) -> str:
    """What `[[tokens: N]]` says."""
    return " ".join(str(number) for number in range(1, count + 1))


def some_work(number: int, chance: random.Random, *, tokens: int) -> Work:
    """Work of one of several kinds, of about as many tokens, at some pace."""
    slow = f"[[slow: {chance.uniform(0.015, 0.04):.3f}]]"
    count = chance.randint(tokens // 2, tokens * 3 // 2)
    match number % 5:
        case 0:
            return Work(f"[[tokens: {count}]]{slow}", counted(count))
        case 1:
            thought = SENTENCE * 2 + f"number {number}."
            return Work(f"[[think: {thought}]][[tokens: {count}]]{slow}", counted(count), thought)
        case 2:
            said = (SENTENCE * (1 + count // 40)).strip()
            return Work(f"[[say: {said}]]{slow}", said)
        case 3:
            places = tuple(f"Orléans {index} 🌞" for index in range(1 + number % 3))
            calls = "".join(f"[[call: look_up {json.dumps({'place': place})}]]" for place in places)
            return Work(f"[[tokens: {count}]]{calls}{slow}", counted(count), calls=places)
        case _:
            said = f"Été {number} 🌞: "
            return Work(f"[[say: {said}.]][[tokens: {count}]]{slow}", f"{said}.{counted(count)}")


@dataclass(slots=True)
class Reading:
    """What the readers of one job saw, one after the other."""

    work: Work
    id: str = ""
    events: Events = field(default_factory=list)
    leaves: int = 0
    """How often a reader left by itself."""
    breaks: int = 0
    """How often a stream ended, or was refused, before the job had."""
    faults: list[str] = field(default_factory=list)
    is_spoilt: bool = False
    """Whether there is no use in reading on."""
    seconds: float = 0.0

    @property
    def has_ended(self) -> bool:
        if not self.events:
            return False
        last = self.events[-1]
        # Any other `error` is followed by `response.failed`.
        return last["type"] in TERMINAL or (last["type"], last.get("code")) == ("error", "response_cancelled")

    @property
    def is_over(self) -> bool:
        return self.is_spoilt or self.has_ended

    def spoil(self, fault: str) -> None:
        """Note a fault after which nothing can be said of the rest."""
        self.faults.append(fault)
        self.is_spoilt = True

    def take(self, event: dict[str, Any]) -> None:
        """The next event: anything but the one that follows what was seen is a fault."""
        number = event.get("sequence_number")
        if self.has_ended:
            self.spoil(f"{event['type']} {number} after the end")
        elif number != len(self.events):
            self.spoil(f"{event['type']} has number {number}, expected {len(self.events)}")
        self.events.append(event)


def answer_faults(work: Work, response: dict[str, Any]) -> list[str]:
    """In what a finished job's object differs from what its script says."""
    if response["status"] != "completed":
        return [f"is {response['status']}: {response['error'] or response['incomplete_details']}"]
    text = "".join(part["text"] for item in response["output"] if item["type"] == "message" for part in item["content"])
    thought = "".join(
        part["text"] for item in response["output"] if item["type"] == "reasoning" for part in item["content"]
    )
    calls = tuple(
        json.loads(item["arguments"])["place"] for item in response["output"] if item["type"] == "function_call"
    )
    faults = []
    for name, found, wanted in (
        ("text", text, work.text),
        ("thought", thought, work.thought),
        ("calls", calls, work.calls),
    ):
        if found != wanted:
            faults.append(f"its {name} differs: {differing(found, wanted)}")
    return faults


def differing(found: Any, wanted: Any) -> str:
    """Two values from where they part."""
    if not isinstance(found, str):
        return f"{found!r}, expected {wanted!r}"
    place = next(
        (i for i, (a, b) in enumerate(zip(found, wanted, strict=False)) if a != b), min(len(found), len(wanted))
    )
    start = max(0, place - 10)
    return f"at {place}: {found[start : place + 30]!r}, expected {wanted[start : place + 30]!r}"


def stream_faults(events: Events, stored: dict[str, Any], replayed: Events) -> list[str]:
    """In what a whole stream breaks its rules, or differs from the stored object or from the same stream read later."""
    faults = []
    for name, check in (("the grammar", check_grammar), ("the rules of items", check_items)):
        try:
            check(events)
        except AssertionError as error:
            faults.append(f"the stream breaks {name}: {' '.join(str(error).split())[:200]}")
    if events != replayed:
        place = next(
            (i for i, (a, b) in enumerate(zip(events, replayed, strict=False)) if a != b),
            min(len(events), len(replayed)),
        )
        faults.append(
            f"read later, the stream has {len(replayed)} events instead of {len(events)} and differs at {place}: "
            f"{replayed[place : place + 1]} instead of {events[place : place + 1]}"[:500]
        )
    if events[-1].get("response", stored) != stored:
        faults.append("the last event's response is not the stored one")
    if not faults and events[-1]["type"] in TERMINAL:
        try:
            if fold(events)["output"] != stored["output"]:
                faults.append("the events add up to another output than the stored one")
        except AssertionError as error:
            faults.append(f"the SDK's accumulator differs: {' '.join(str(error).split())[:200]}")
    return faults

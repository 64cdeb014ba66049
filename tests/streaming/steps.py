"""Inputs of a builder as values, and the output that they must give."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hypothesis import strategies as st

from responses_api.protocol.objects import StreamEvent
from responses_api.protocol.objects.items import Logprob, Phase
from responses_api.streaming import Outcome, ResponseBuilder


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    delta: str
    phase: Phase | None = None
    logprobs: tuple[Logprob, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    delta: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    name: str
    namespace: str | None = None
    custom: bool = False
    deltas: tuple[str, ...] = ()
    end: Literal["complete", "cut", "left open"] = "complete"


Step = Text | Reasoning | Call
Steps = Sequence[Step]


def take(builder: ResponseBuilder, step: Step) -> list[StreamEvent]:
    """Feed the builder one step."""
    if isinstance(step, Text):
        return builder.text(step.delta, phase=step.phase, logprobs=step.logprobs)
    if isinstance(step, Reasoning):
        return builder.reasoning(step.delta)
    events = builder.open_call(step.name, namespace=step.namespace, custom=step.custom)
    for delta in step.deltas:
        events += builder.call_text(delta)
    if step.end != "left open":
        events += builder.close_call(complete=step.end == "complete")
    return events


def take_all(builder: ResponseBuilder, steps: Steps, *, compacted: bool) -> list[StreamEvent]:
    """Start the builder and feed it all steps, with or without a compacted history."""
    events = builder.start()
    if compacted:
        events += builder.compaction("mlxr1.blob", tokens=(100, 10))
    for number, step in enumerate(steps):
        if isinstance(step, Call) and step.end == "left open" and number < len(steps) - 1:
            continue  # no answer leaves a call open for another item
        events += take(builder, step)
    return events


def expected_output(steps: Steps, outcome: Outcome) -> list[dict[str, Any]]:
    """The output that the steps must give, without ids and with each text under `text`."""
    output: list[dict[str, Any]] = []
    early: list[Logprob] = []
    for step in steps:
        if isinstance(step, Call):
            text, status = "".join(step.deltas), "incomplete" if step.end == "cut" else "completed"
            call = {"name": step.name, "namespace": step.namespace, "text": text, "status": status}
            kind = "custom_tool_call" if step.custom else "function_call"
            output.append({"type": kind, **call, "open": step.end == "left open"})
            early = []
        elif isinstance(step, Text):
            early += step.logprobs
            if step.delta:
                message = _grown(output, {"type": "message", "phase": step.phase, "logprobs": []})
                message["text"] += step.delta
                message["logprobs"] += early
                early = []
        elif step.delta:
            _grown(output, {"type": "reasoning"})["text"] += step.delta
            early = []
    if output and (output[-1].get("open") or (outcome != "completed" and "open" not in output[-1])):
        output[-1]["status"] = "incomplete"
    if outcome == "completed" and all(item["type"] == "reasoning" for item in output):
        output.append({"type": "message", "phase": None, "logprobs": [], "text": "", "status": "completed"})
    for item in output:
        if item.pop("open", None) is not None and item["type"] == "function_call" and item["status"] == "completed":
            item["text"] = item["text"] or "{}"
    return output


def _grown(output: list[dict[str, Any]], kind: dict[str, Any]) -> dict[str, Any]:
    """The last item, if it is of this kind, or else a new one."""
    if not output or any(output[-1].get(name) != kind[name] for name in ("type", "phase") if name in kind):
        output.append({**kind, "text": "", "status": "completed"})
    return output[-1]


def stored_item(item: Any) -> dict[str, Any]:
    """A stored item in the form of `expected_output`."""
    common = {"type": item["type"], "status": item["status"]}
    if item["type"] == "message":
        [part] = item["content"]
        return {**common, "phase": item.get("phase"), "text": part["text"], "logprobs": part["logprobs"]}
    if item["type"] == "reasoning":
        [part] = item["content"]
        return {**common, "text": part["text"]}
    text = item["input"] if item["type"] == "custom_tool_call" else item["arguments"]
    return {**common, "name": item["name"], "namespace": item.get("namespace"), "text": text}


_DELTAS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_TOKENS = st.builds(
    lambda token, logprob: {"token": token, "logprob": logprob, "bytes": list(token.encode())},
    _DELTAS,
    st.floats(-100, 0),
)
_LOGPROBS = st.builds(lambda token, top: {**token, "top_logprobs": top}, _TOKENS, st.lists(_TOKENS, max_size=2))
_NAMES = st.sampled_from(["get_weather", "apply-patch", "x"])
_TEXTS = st.builds(
    Text,
    delta=_DELTAS,
    phase=st.sampled_from([None, None, "commentary", "final_answer"]),
    logprobs=st.lists(_LOGPROBS, max_size=2).map(tuple),
)
_CALLS = st.builds(
    Call,
    name=_NAMES,
    namespace=st.none() | _NAMES,
    custom=st.booleans(),
    deltas=st.lists(_DELTAS, max_size=3).map(tuple),
    end=st.sampled_from(["complete", "cut", "left open"]),
)
STEPS: st.SearchStrategy[list[Step]] = st.lists(_TEXTS | st.builds(Reasoning, delta=_DELTAS) | _CALLS, max_size=8)

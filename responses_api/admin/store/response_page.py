"""The content of a response's page, read by a fixed number of queries."""

from dataclasses import dataclass
from typing import Any

import orjson
from django.db.models import Sum

from responses_api.admin.elements.display import file_size, pretty_json
from responses_api.models import Process, Response, TurnItem, UsageRecord
from responses_api.selectors.responses import wire_response

from .bubbles import Bubble, BubbleMaker, remark
from .conversation import SHOWN_ITEMS, WHOLE, read_history

# Settings, each with the usual value, which is not shown.
SETTINGS = {
    "temperature": None,
    "top_p": None,
    "max_output_tokens": None,
    "seed": None,
    "truncation": "disabled",
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "top_logprobs": 0,
    "service_tier": "default",
    "user": None,
    "safety_identifier": None,
    "prompt_cache_key": None,
}
CONTINUATIONS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsePage:
    """The values that the template needs besides the row."""

    instructions: Bubble | None
    bubbles: list[Bubble]
    hidden: int
    """The number of older items that are not shown."""
    figures: list[tuple[str, str]]
    times: list[tuple[str, Any]]
    worker: Process | None
    """The worker that owns the response, if it has a row."""
    settings: list[tuple[str, str]]
    metadata: list[tuple[str, str]]
    error: str
    previous: Response | None
    continuations: list[Response]
    raw: str


def get_response_page(row: Response) -> ResponsePage:
    """Read the values of a response's page. Any stored content is shown, and none makes this fail."""
    body = parsed(row.body)
    ended = row.turn_id is not None
    history = read_history(row.turn_id if ended else row.parent_id, own_turn=ended, limit=SHOWN_ITEMS)
    maker = BubbleMaker()
    # The newest texts first, so that older ones are shortened when the page gets too long.
    pending = pending_input(maker, row) if not ended else []
    instructions = instructions_bubble(maker, body.get("instructions"))
    bubbles = [maker.from_place(place) for place in reversed(history.places)][::-1] + pending
    return ResponsePage(
        instructions=instructions,
        bubbles=bubbles,
        hidden=history.hidden,
        figures=figures_of(row),
        times=times_of(row),
        worker=Process.objects.filter(pk=row.worker).first() if row.worker else None,
        settings=[
            (name.replace("_", " "), short(body[name]))
            for name, usual in SETTINGS.items()
            if body.get(name) not in (None, usual)
        ],
        metadata=[(str(key), str(value)) for key, value in mapping(body.get("metadata")).items()],
        error=error_of(body),
        previous=previous_of(row),
        continuations=continuations_of(row),
        raw=raw_of(row, body),
    )


def parsed(text: str) -> dict[str, Any]:
    """A stored object; empty when it can't be parsed."""
    try:
        return mapping(orjson.loads(text))
    except orjson.JSONDecodeError:
        return {}


def mapping(value: Any) -> dict[str, Any]:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def short(value: Any) -> str:
    """A setting in one line."""
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text if len(text) <= 200 else text[:200] + "…"


def instructions_bubble(maker: BubbleMaker, value: Any) -> Bubble | None:
    """The instructions of this request, which later requests don't inherit."""
    if not value:
        return None
    text = value if isinstance(value, str) else pretty_json(value)
    return Bubble(side="system", label="instructions", parts=[maker.text(text)], own=True)


def pending_input(maker: BubbleMaker, row: Response) -> list[Bubble]:
    """The input of an active job, taken from its request: its items are stored when it ends."""
    if len(row.request) > WHOLE:
        note = f"The request has {file_size(len(row.request))}. Its items are shown when it has ended."
        return [Bubble(side="other", label="input", parts=[remark(note)], own=True)]
    sent = parsed(row.request).get("input")
    items = sent if isinstance(sent, list) else [{"role": "user", "content": sent}] if sent else []
    bubbles = []
    for item in items[-SHOWN_ITEMS:]:
        if isinstance(item, dict):
            bubble = maker.from_item(item)
        else:
            bubble = Bubble(side="other", label="input", parts=[remark(short(item))])
        bubble.own = True
        bubbles.append(bubble)
    return bubbles


def figures_of(row: Response) -> list[tuple[str, str]]:
    """Tokens and speed."""
    figures: list[tuple[str, str]] = []
    for name, value in (
        ("Input", row.input_tokens),
        ("of it cached", row.cached_tokens),
        ("Output", row.output_tokens),
    ):
        if value is not None:
            figures.append((name, f"{value:,} tokens"))
    usage = None
    if row.completed_at is not None:
        usage = UsageRecord.objects.filter(created_at=row.completed_at, response_id=row.public_id).first()
    if usage is not None:
        if usage.first_token_ms is not None:
            figures.append(("First token after", seconds(usage.first_token_ms)))
            writing = usage.duration_ms - usage.first_token_ms
            if writing > 0 and usage.output_tokens > 1:
                figures.append(("Speed", f"{(usage.output_tokens - 1) * 1000 / writing:,.1f} tokens a second"))
        figures.append(("Took", seconds(usage.duration_ms)))
    return figures


def seconds(milliseconds: int) -> str:
    """A time span as text."""
    return f"{milliseconds:,} ms" if milliseconds < 1000 else f"{milliseconds / 1000:,.2f} s"


def times_of(row: Response) -> list[tuple[str, Any]]:
    """The timestamps of a response."""
    times: list[tuple[str, Any]] = [("Created", row.created_at)]
    if row.completed_at is not None:
        times.append(("Completed", row.completed_at))
    if row.cancel_requested_at is not None:
        times.append(("Cancel requested", row.cancel_requested_at))
    if row.lease_until is not None:
        times.append(("Lease until", row.lease_until))
    if row.expires_at is not None:
        times.append(("Expires", row.expires_at))
    return times


def error_of(body: dict[str, Any]) -> str:
    """Why a response has no answer or an incomplete one."""
    error = mapping(body.get("error"))
    if error:
        return ": ".join(str(error[name]) for name in ("code", "message") if error.get(name))
    reason = mapping(body.get("incomplete_details")).get("reason")
    return f"The answer was cut: {reason}." if reason else ""


def previous_of(row: Response) -> Response | None:
    """The response that this one continues, if it is still stored."""
    if not row.previous_response_id:
        return None
    previous = Response.objects.filter(public_id=row.previous_response_id, project_id=row.project_id)
    return previous.only("pk", "public_id").first()


def continuations_of(row: Response) -> list[Response]:
    """The first responses that continue this one."""
    if row.turn_id is None:
        return []
    following = Response.objects.filter(turn__parent_id=row.turn_id).order_by("pk")
    return list(following.only("pk", "public_id")[:CONTINUATIONS])


def raw_of(row: Response, body: dict[str, Any]) -> str:
    """The object that clients get, as JSON; the stored text when it can't be parsed."""
    output = TurnItem.objects.filter(turn=row.turn_id, is_output=True).aggregate(size=Sum("item__size"))["size"] or 0
    if len(row.body) + output > WHOLE:
        return f"This object has {file_size(len(row.body) + output)}. GET /v1/responses/{row.public_id} answers it."
    if not body:
        return row.body
    try:
        return pretty_json(wire_response(row))
    except orjson.JSONDecodeError:
        return pretty_json(body)

"""Messages of the bus: each survives a channel layer unchanged, and no other value is taken for one."""

from typing import Any, get_args
from unittest.mock import patch

import orjson
import pytest
from channels.layers import get_channel_layer
from hypothesis import given
from hypothesis import strategies as st

from responses_api import bus
from responses_api.bus import subscribe
from responses_api.bus.messages import CancelRow, JobEvents, Message, NotUnderstood, ResponseRefused, from_wire
from responses_api.bus.publisher import merged
from responses_api.bus.relayed_errors import RelayedError
from responses_api.bus.sizes import size_of
from responses_api.errors import ApiError, EntryTooLarge, ServerError

KINDS = get_args(Message)

st.register_type_strategy(str, st.text(st.characters(exclude_categories=["Cs"])))
st.register_type_strategy(int, st.integers(-(2**63), 2**63 - 1))
messages = st.one_of([st.builds(kind) for kind in KINDS])


@given(messages)
def test_a_message_survives_the_wire(message: Message) -> None:
    """Whether the layer passes it on as it is, or a broker turns tuples into lists."""
    wire = message.to_wire()
    assert from_wire(wire) == message
    assert from_wire(orjson.loads(orjson.dumps(wire))) == message
    assert wire["type"] == message.type
    assert message.size <= size_of(wire)


@given(messages, st.data())
def test_a_message_of_another_version_is_not_taken_for_one(message: Message, data: st.DataObject) -> None:
    """Neither of an unknown type, nor with a missing field; a new field is ignored."""
    wire = message.to_wire()
    assert from_wire({**wire, "new": 1}) == message
    required = [name for name in wire if name not in ("last", "reason", "error", "type")]
    missing = data.draw(st.sampled_from([*required, "type"]))
    with pytest.raises(NotUnderstood):
        from_wire({name: value for name, value in wire.items() if name != missing})
    with pytest.raises(NotUnderstood):
        from_wire({**wire, "type": "another"})


def test_types_on_the_wire_are_distinct() -> None:
    assert len({kind.__dataclass_fields__["type"].default for kind in KINDS}) == len(KINDS)


def test_an_invalid_message_is_logged_without_its_content() -> None:
    """People who read logs need not be allowed to read what users write."""
    with pytest.raises(NotUnderstood) as caught:
        from_wire({"type": "job.events", "first": "secret", "events": [["secret", "secret", "secret"]]})
    assert str(caught.value) == "'job.events': events.0, first"


async def test_a_listener_skips_an_invalid_message() -> None:
    """It is logged, and the next message comes."""
    layer: Any = get_channel_layer()
    subscription = await subscribe("mixed")
    with patch.object(bus.subscription, "log") as log:
        await layer.group_send("mixed", {"type": "process.cancel", "response": 7})
        await layer.group_send("mixed", CancelRow(row=7).to_wire())
        assert await subscription.receive(5) == CancelRow(row=7)
    await subscription.close()
    log.warning.assert_called_once_with("bus.message_not_understood", group="mixed", error="'process.cancel': type")


@pytest.mark.parametrize(
    "error", [EntryTooLarge("Too large.", param="input"), ServerError("Failed.", headers={"a": "b"})]
)
def test_an_error_survives_the_wire(error: ApiError) -> None:
    """With its status, code and headers."""
    message = from_wire(ResponseRefused(attempt=1, error=RelayedError.of(error)).to_wire())
    assert isinstance(message, ResponseRefused)
    again = message.error.as_error()
    assert (type(again), again.envelope(), again.headers) == (type(error), error.envelope(), error.headers)


@given(st.lists(st.integers(1, 4), max_size=6))
def test_joined_messages_equal_their_parts(counts: list[int]) -> None:
    """Consecutive events of a job become one message."""
    parts: list[Message] = []
    first = 0
    for count in counts:
        parts.append(JobEvents(first=first, events=tuple((str(first + n), "{}") for n in range(count))))
        first += count
    joined = merged(parts)
    assert len(joined) == min(1, len(counts))
    for message in joined:
        assert isinstance(message, JobEvents)
        assert [kind for kind, _ in message.events] == [str(number) for number in range(first)]

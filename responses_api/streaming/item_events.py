"""The events of one output item: their place in the stream, and the text that its deltas add up to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from responses_api.ids import Prefix, derived_id
from responses_api.streaming.events import Event, NumberEvent


class ItemEvents:
    """Guarantees that every event names its item, and that `text` is what the deltas concatenate to.

    Ids are derived from the response's id and from the item's place in the output. `in_part` says that the events
    between the first and the last belong to the item's one content part.
    """

    def __init__(
        self, number: NumberEvent, *, prefix: Prefix, response_id: str, output_index: int, in_part: bool
    ) -> None:
        self._number = number
        self._response_id = response_id
        self._output_index = output_index
        self._deltas: list[str] = []
        self.item_id = self.derived_id(prefix)
        self._place: dict[str, Any] = {"item_id": self.item_id, "output_index": output_index}
        if in_part:
            self._place["content_index"] = 0

    @property
    def text(self) -> str:
        return "".join(self._deltas)

    def derived_id(self, prefix: Prefix) -> str:
        """An id of this item, of another kind than its own."""
        return derived_id(prefix, self._response_id, self._output_index)

    def added(self, item: Mapping[str, Any]) -> Event:
        return self._number("response.output_item.added", output_index=self._output_index, item=item)

    def done(self, item: Mapping[str, Any]) -> Event:
        return self._number("response.output_item.done", output_index=self._output_index, item=item)

    def delta(self, type: str, delta: str, **fields: Any) -> Event:
        self._deltas.append(delta)
        return self._number(type, **self._place, delta=delta, **fields)

    def event(self, type: str, **fields: Any) -> Event:
        return self._number(type, **self._place, **fields)

"""The events of one output item, and the text of its deltas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from responses_api.ids import Prefix, derived_id
from responses_api.streaming.events import Event, MakeEvent


class ItemEvents:
    """Guarantees that every event names its item, and that `text` is what the deltas concatenate to.

    Ids are derived from the response's id and from the item's place in the output. With `in_part`, the events
    between the first and the last belong to the item's only content part.
    """

    def __init__(
        self, make_event: MakeEvent, *, prefix: Prefix, response_id: str, output_index: int, in_part: bool
    ) -> None:
        self._event = make_event
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
        """An id derived from this item's place, of another kind than its own."""
        return derived_id(prefix, self._response_id, self._output_index)

    def added(self, item: Mapping[str, Any]) -> Event:
        return self._event("response.output_item.added", output_index=self._output_index, item=item)

    def done(self, item: Mapping[str, Any]) -> Event:
        return self._event("response.output_item.done", output_index=self._output_index, item=item)

    def delta(self, type: str, delta: str, **fields: Any) -> Event:
        self._deltas.append(delta)
        return self._event(type, **self._place, delta=delta, **fields)

    def event(self, type: str, **fields: Any) -> Event:
        return self._event(type, **self._place, **fields)

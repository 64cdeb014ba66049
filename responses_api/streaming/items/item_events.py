"""The events of one output item, and the text of its deltas."""

from __future__ import annotations

from collections.abc import Callable

from responses_api.ids import Prefix, derived_id
from responses_api.protocol.objects import OutputItem
from responses_api.protocol.objects.events import ContentPartEvent, ItemPlace, OutputItemEvent, PartPlace
from responses_api.protocol.objects.items import OutputText, ReasoningText


class ItemEvents:
    """Guarantees that every event names its item, and that `text` is what the deltas concatenate to.

    Ids are derived from the response's id and from the item's place in the output. An item has one content part at
    most.
    """

    def __init__(self, next_number: Callable[[], int], *, prefix: Prefix, response_id: str, output_index: int) -> None:
        self._next_number = next_number
        self._response_id = response_id
        self._output_index = output_index
        self._deltas: list[str] = []
        self.item_id = self.derived_id(prefix)

    @property
    def text(self) -> str:
        return "".join(self._deltas)

    def derived_id(self, prefix: Prefix) -> str:
        """An id derived from this item's place, of another kind than its own."""
        return derived_id(prefix, self._response_id, self._output_index)

    def added(self, item: OutputItem) -> OutputItemEvent:
        return {
            "type": "response.output_item.added",
            "sequence_number": self._next_number(),
            "output_index": self._output_index,
            "item": item,
        }

    def done(self, item: OutputItem) -> OutputItemEvent:
        return {
            "type": "response.output_item.done",
            "sequence_number": self._next_number(),
            "output_index": self._output_index,
            "item": item,
        }

    def part_added(self, part: OutputText | ReasoningText) -> ContentPartEvent:
        return {"type": "response.content_part.added", **self.part_place(), "part": part}

    def part_done(self, part: OutputText | ReasoningText) -> ContentPartEvent:
        return {"type": "response.content_part.done", **self.part_place(), "part": part}

    def add_delta(self, delta: str) -> None:
        """The next event adds this text."""
        self._deltas.append(delta)

    def place(self) -> ItemPlace:
        """The place of the next event of the item."""
        return {
            "sequence_number": self._next_number(),
            "item_id": self.item_id,
            "output_index": self._output_index,
        }

    def part_place(self) -> PartPlace:
        """The place of the next event of the item's content part."""
        return {
            "sequence_number": self._next_number(),
            "item_id": self.item_id,
            "output_index": self._output_index,
            "content_index": 0,
        }

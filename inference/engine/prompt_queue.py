"""Decides which prompts are read next, one slice per step, so that no prompt delays a stream or starves another."""

from typing import TYPE_CHECKING

from inference.engine.sequence import Sequence
from inference.types import Chunk

if TYPE_CHECKING:
    from inference.prefix_cache.prefix_cache import PrefixCache

_STARTED_AHEAD = 8
"""How many sequences may look up a prefix and count as started before their prompt is read."""
_READING_SECONDS = 0.005
"""How long an engine without other work waits for the disk in one step."""
_IDLE_SLICES = 3
"""How many slices of short prompts are read at once while nothing is generating."""


class PromptQueue:
    """The sequences whose prompts are to be read, in order of admission."""

    def __init__(self, slice_tokens: int) -> None:
        self._slice_tokens = slice_tokens
        self._sequences: dict[str, Sequence] = {}
        self._long_is_next = False

    def __len__(self) -> int:
        return len(self._sequences)

    def add(self, sequence: Sequence) -> None:
        self._sequences[sequence.request.id] = sequence

    def remove(self, request_id: str) -> Sequence | None:
        """Take a sequence out; None if it isn't here."""
        return self._sequences.pop(request_id, None)

    def is_long(self, sequence: Sequence) -> bool:
        """The rest of its prompt is longer than a slice, or is to be read in more than one."""
        return sequence.remaining > self._slice_tokens or bool(sequence.cuts)

    def start(self, prefix_cache: "PrefixCache", *, is_idle: bool) -> list[Chunk]:
        """Look up the prefixes of the sequences that will be read next; returns their first chunks.

        A sequence waits while its prefix is read from the disk. If `is_idle`, so does the caller, for a moment.
        """
        chunks = []
        next_ones = list(self._sequences.values())[:_STARTED_AHEAD]
        for sequence in next_ones:
            if not sequence.started and self._has_read(sequence, prefix_cache):
                sequence.started = True
                request = sequence.request
                hit = prefix_cache.fetch(
                    request.cache_scope, sequence.context, key=request.cache_key, reading=sequence.reading
                )
                sequence.cache, sequence.done, sequence.cached = hit.cache, hit.covered, hit.covered
                sequence.reading = None
                if prefix_cache.wants_cuts:
                    sequence.plan_cuts((*request.cuts, hit.known), apart=self._slice_tokens // 4)
                cached = min(sequence.cached, len(request.prompt))
                chunks.append(Chunk(request_id=request.id, started=True, cached_tokens=cached))
        if is_idle and next_ones and not any(sequence.started for sequence in next_ones):
            assert next_ones[0].reading is not None
            next_ones[0].reading.wait(_READING_SECONDS)
        return chunks

    def _has_read(self, sequence: Sequence, prefix_cache: "PrefixCache") -> bool:
        """Whether nothing more of a sequence's prefix comes from the disk; begins to read it."""
        if not sequence.sought:
            sequence.sought = True
            sequence.reading = prefix_cache.read(sequence.request.cache_scope, sequence.context)
        return sequence.reading is None or sequence.reading.is_done

    def next_group(self, *, is_idle: bool, awaits_first_token: bool) -> list[Sequence]:
        """The sequences to read in this step: one long prompt, or several short ones. They alternate.

        `is_idle`: nothing is generating. `awaits_first_token`: a sequence that is generating has no token yet.
        """
        ready = [sequence for sequence in self._sequences.values() if sequence.started]
        long = next(filter(self.is_long, ready), None)
        short = [sequence for sequence in ready if not self.is_long(sequence)]
        if long is not None and (self._long_is_next or not short):
            if awaits_first_token:
                return []  # its token comes with this step: no slice before it
            self._long_is_next = False
            return [long]
        self._long_is_next = True
        # A burst on an idle engine: one larger read delays no stream, and the new streams then run in step.
        most = _IDLE_SLICES * self._slice_tokens if is_idle and long is None else self._slice_tokens
        group = short[:1]
        for sequence in short[1:]:
            longest = max(sequence.remaining, *(other.remaining for other in group))
            if (len(group) + 1) * longest <= most:
                group.append(sequence)
        return group

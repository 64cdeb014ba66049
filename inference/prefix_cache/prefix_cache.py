"""Keeps the attention state of sequences, so that the next turn computes only what is new.

The states of a scope form a tree over their tokens: what sequences have in common is kept once, and is there for a
sequence that turns off anywhere. Only the engine's thread uses it; any thread may read its figures.
"""

import logging
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from inference.prefix_cache.disk_cache import DiskCache, Reading
from inference.prefix_cache.layout import Layout
from inference.prefix_cache.states import LiveState, Path, States
from inference.prefix_cache.token_tree import pack
from inference.prefix_cache.use_order import UseOrder
from inference.types import CacheFigures

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Tally:
    """What one tier had for the prompts that were looked up."""

    hits: int = 0
    misses: int = 0
    tokens: int = 0

    def count(self, tokens: int) -> None:
        """It had the state of so many tokens of a prompt."""
        self.hits += tokens > 0
        self.misses += tokens <= 0
        self.tokens += max(0, tokens)


@dataclass(frozen=True, slots=True)
class Hit:
    """What is known of a prompt."""

    cache: list[Any] | None = None
    """A private copy of the state after the first `covered` tokens; None when there is none."""
    covered: int = 0
    """Always fewer than all: a generator needs one token to start from."""
    known: int = 0
    """How many of its first tokens were read before. Others will turn off here too: a state at this position helps."""


class PrefixCache:
    """Guarantees: no scope reads another's states; at most `max_bytes` (0: none); the least recently used go first."""

    def __init__(
        self, max_bytes: int, layout: Layout | None, *, disk: DiskCache | None = None, worth_reading: int = 1
    ) -> None:
        """layout: of the model; None when its states can't be kept. disk: the second tier, open; it is read for at
        least `worth_reading` more tokens than memory has.
        """
        self.max_bytes = max_bytes
        self._layout = layout if max_bytes else None
        self._disk, self._worth_reading = disk, worth_reading
        self._forgotten: set[str] = set()
        self._in_memory, self._on_disk = _Tally(), _Tally()
        if self._layout is not None:
            self._states = States(self._layout)
            self._order = UseOrder(self._states)
            self._window = max((need for need in self._layout.needs if need is not None), default=0)

    @property
    def nbytes(self) -> int:
        """The bytes that are kept."""
        return self._states.nbytes if self._layout is not None else 0

    @property
    def memory_figures(self) -> CacheFigures:
        """The figures of the first tier. Any thread."""
        if self._layout is None:
            return CacheFigures()
        return CacheFigures(**asdict(self._in_memory), evictions=self._order.evictions, nbytes=self.nbytes)

    @property
    def disk_figures(self) -> CacheFigures:
        """The figures of the second tier; its bytes are those of the whole directory. Any thread."""
        if self._disk is None:
            return CacheFigures()
        return CacheFigures(**asdict(self._on_disk), evictions=self._disk.evictions, nbytes=self._disk.nbytes)

    @property
    def holders(self) -> set[str]:
        """Those of the states in the first tier. Any thread."""
        return set(self._states.holders) - {""} if self._layout is not None else set()

    @property
    def wants_cuts(self) -> bool:
        """Whether a state can be resumed only where it was inserted, or not far before."""
        return self._layout is not None and not self._layout.can_be_cut_anywhere

    def retain(self, scopes: Collection[str]) -> None:
        """Drop the states of all other scopes."""
        if self._layout is not None:
            for scope in self._states.scopes() - frozenset(scopes):
                self._drop(scope)

    def read(self, scope: str, prompt: Sequence[int]) -> Reading | None:
        """Begin to read what only the disk has; None when there is nothing to wait for."""
        if self._layout is None or self._disk is None or scope in self._forgotten:
            return None
        packed = pack(prompt)
        path, known = self._states.find(scope, packed)
        start = self._states.longest_cut(path, min(known, len(prompt) - 1))
        end = self._disk.find(scope, packed, len(prompt) - 1)
        if end - start < self._worth_reading:
            return None
        return self._disk.read(scope, packed, start, end, most_bytes=self.max_bytes)

    def fetch(self, scope: str, prompt: Sequence[int], *, key: str = "", reading: Reading | None = None) -> Hit:
        """The longest state that a prompt can be resumed from, with what was read for it."""
        if self._layout is None:
            return Hit()
        if reading is not None:
            self._adopt(scope, reading, key)
        path, known = self._states.find(scope, pack(prompt))
        covered = self._states.longest_cut(path, min(known, len(prompt) - 1))
        in_memory = covered if reading is None else min(covered, reading.start)
        self._in_memory.count(in_memory)
        if self._disk is not None and in_memory < len(prompt) - 1:
            self._on_disk.count(covered - in_memory)
        if not covered:
            return Hit(known=known)
        cache = self._states.cache(path, covered, room=len(prompt) - covered)
        self._use(path, covered, key)
        return Hit(cache, covered, known)

    def insert(
        self,
        scope: str,
        tokens: Sequence[int],
        cache: Sequence[Any],
        *,
        key: str = "",
        holder: str = "",
        on_disk: bool = False,
    ) -> bool:
        """Keep a copy of the state after `tokens`, `on_disk` also there, until its holder is released if there is one;
        returns whether it added anything to memory. Raises ValueError when the state is not that of so many tokens.
        """
        if self._layout is None or not tokens or scope in self._forgotten:
            return False
        source, packed = LiveState(self._layout, cache, len(tokens)), pack(tokens)
        path, known = self._states.find(scope, packed)
        new = sum(layer.nbytes for layer in cache) * (len(tokens) - known) // len(tokens)
        if new + sum(node.content.nbytes for node in path) > self.max_bytes:
            return False
        path, added = self._states.add(scope, packed, source)
        self._states.hold(path, len(tokens), holder)
        self._use(path, len(tokens), key)
        if on_disk and self._disk is not None:
            self._disk.save(scope, packed, [node for node in path if node.end <= len(tokens)], holder=holder)
        self._make_room()
        return added

    def resize(self, max_bytes: int) -> None:
        """Keep at most so many bytes from now on."""
        self.max_bytes = max_bytes
        while self.nbytes > max_bytes:
            self._order.drop_oldest()

    def forget(self, scope: str) -> None:
        """Drop a scope's states, and accept no new ones: its running sequences are about to end."""
        self._forgotten.add(scope)
        if self._layout is not None:
            self._drop(scope)

    def release(self, holders: Collection[str]) -> None:
        """Drop what only these holders need; the second tier is told by others."""
        if self._layout is None or not any(holder in self._states.holders for holder in holders):
            return
        for scope in self._states.scopes():
            for node in reversed(list(self._states.edges(scope))):
                if self._states.release(node, holders):
                    self._order.drop(node)

    def _drop(self, scope: str) -> None:
        for node in reversed(list(self._states.edges(scope))):
            self._order.drop(node)

    def _adopt(self, scope: str, reading: Reading, key: str) -> None:
        """Take over what was read; what can't be taken is a miss."""
        try:
            for state in reading.future.result() if scope not in self._forgotten else ():
                path, _ = self._states.add(scope, state.tokens, state)
                if path:
                    self._states.hold(path, state.end, state.holder)
                    self._use(path, state.end, key)
        except Exception:  # the cache only saves time
            log.exception("a state read from disk can't be used")
        self._make_room()

    def _make_room(self) -> None:
        while self.nbytes > self.max_bytes:
            self._order.drop_oldest()

    def _use(self, path: Path, length: int, key: str) -> None:
        path = [node for node in path if node.start < length]
        self._order.use(path, window=self._window, key=key)

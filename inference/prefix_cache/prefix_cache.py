"""Keeps the attention state of sequences, so that the next turn computes only what is new.

The states of a scope form a tree over their tokens: what sequences have in common is kept once, and is there for a
sequence that turns off anywhere. Only the engine's thread uses it; any thread may read `nbytes`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from inference.prefix_cache.layout import Layout
from inference.prefix_cache.states import LiveState, Path, States
from inference.prefix_cache.token_tree import pack
from inference.prefix_cache.use_order import UseOrder


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

    def __init__(self, max_bytes: int, layout: Layout | None) -> None:
        """layout: of the model; None when its states can't be kept."""
        self.max_bytes = max_bytes
        self._layout = layout if max_bytes else None
        self._forgotten: set[str] = set()
        if self._layout is not None:
            self._states = States(self._layout)
            self._order = UseOrder(self._states)
            self._window = max((need for need in self._layout.needs if need is not None), default=0)

    @property
    def nbytes(self) -> int:
        """The bytes that are kept."""
        return self._states.nbytes if self._layout is not None else 0

    @property
    def wants_cuts(self) -> bool:
        """Whether a state can be resumed only where it was inserted, or not far before."""
        return self._layout is not None and not self._layout.can_be_cut_anywhere

    def fetch(self, scope: str, prompt: Sequence[int], *, key: str = "") -> Hit:
        """The longest state that a prompt can be resumed from."""
        if self._layout is None:
            return Hit()
        path, known = self._states.find(scope, pack(prompt))
        covered = self._states.longest_cut(path, min(known, len(prompt) - 1))
        if not covered:
            return Hit(known=known)
        cache = self._states.cache(path, covered)
        self._use(path, covered, key)
        return Hit(cache, covered, known)

    def insert(self, scope: str, tokens: Sequence[int], cache: Sequence[Any], *, key: str = "") -> bool:
        """Keep a copy of the state after `tokens`; returns whether it added anything. Raises ValueError when the state
        is not that of so many tokens.
        """
        if self._layout is None or not tokens or scope in self._forgotten:
            return False
        source, packed = LiveState(self._layout, cache, len(tokens)), pack(tokens)
        path, known = self._states.find(scope, packed)
        new = sum(layer.nbytes for layer in cache) * (len(tokens) - known) // len(tokens)
        if new + sum(node.content.nbytes for node in path) > self.max_bytes:
            return False
        path, added = self._states.add(scope, packed, source)
        self._use(path, len(tokens), key)
        while self.nbytes > self.max_bytes:
            self._order.drop_oldest()
        return added

    def forget(self, scope: str) -> None:
        """Drop a scope's states, and accept no new ones: its running sequences are about to end."""
        self._forgotten.add(scope)
        if self._layout is not None:
            for node in reversed(list(self._states.edges(scope))):
                self._order.drop(node)

    def _use(self, path: Path, length: int, key: str) -> None:
        path = [node for node in path if node.start < length]
        self._order.use(path, window=self._window, key=key)

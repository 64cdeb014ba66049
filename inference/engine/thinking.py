"""Ends a model's thinking when it has used its share of the answer's tokens. Pure, standard library only."""

from collections.abc import Callable

from inference.types import ThinkingLimit

_BEGINS_WITHIN = 8
"""A model that has not begun to think after this many tokens will not."""


class ThinkingWatch:
    """Follows the tokens of one answer, and says which one must come next. Call `add` with every chosen token."""

    def __init__(self, limit: ThinkingLimit, spell: Callable[[int], bytes]) -> None:
        """spell: returns the bytes of a token."""
        self._limit, self._spell = limit, spell
        self._start, self._end = limit.start.encode(), limit.end.encode()
        self._kept = max(len(self._start), len(self._end)) - 1
        self._tail = b""
        self._is_thinking = limit.opened
        self._tokens = 0
        self._closing = iter(limit.closing)
        self.forced: int | None = None
        """The token that must come next; None when any may."""
        self.is_over = False
        """No more tokens will be forced."""
        self._decide()

    def add(self, token: int) -> None:
        """Take the chosen token."""
        if self.is_over:
            return
        if self.forced is not None:
            self.forced = next(self._closing, None)
            self.is_over = self.forced is None
            return
        self._tokens += 1
        self._tail += self._spell(token)
        marker = self._end if self._is_thinking else self._start
        position = self._tail.find(marker)
        if position >= 0:
            self._tail = self._tail[position + len(marker) :]
            self.is_over, self._is_thinking = self._is_thinking, True
        elif not self._is_thinking and self._tokens >= _BEGINS_WITHIN:
            self.is_over = True
        self._tail = self._tail[-self._kept :]
        self._decide()

    def _decide(self) -> None:
        is_spent = self._is_thinking and self._tokens >= self._limit.tokens
        # Between characters, and not while the end marker is being written.
        is_ending = any(self._tail.endswith(self._end[:length]) for length in range(1, len(self._end)))
        if is_spent and not self.is_over and not is_ending and _is_whole(self._tail):
            self.forced = next(self._closing, None)


def _is_whole(tail: bytes) -> bool:
    """Whether the bytes end at the end of a character; they may begin inside one."""
    for length, byte in enumerate(reversed(tail[-3:]), start=1):
        if byte < 0x80:
            return True
        if byte >= 0xC0:
            return length >= (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4)
    return True

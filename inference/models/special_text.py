"""Finds special texts in long texts without blocking the interpreter for long. Pure, standard library only."""

import re
from collections.abc import Iterable, Iterator

_SLICE = 1 << 16
"""Characters that are searched in one call: at most a millisecond."""


class SpecialTexts:
    """A set of texts to find; where several begin at the same place, the longest is found."""

    def __init__(self, texts: Iterable[str]) -> None:
        ordered = sorted(texts, key=len, reverse=True)
        self._longest = len(ordered[0]) if ordered else 0
        self._pattern = re.compile("|".join(map(re.escape, ordered)) or r"(?!)")

    def split(self, text: str) -> Iterator[tuple[str, str]]:
        """The text as pairs of a plain run, perhaps empty, and the special text after it, "" in the last pair."""
        start = at = 0  # the beginning of the run, and the position up to which it was searched
        while at < len(text):
            stop = at + _SLICE
            match = self._pattern.search(text, at, stop)
            if match is None:
                at = max(at + 1, stop - self._longest + 1) if stop < len(text) else len(text)
                continue
            # At the end of the slice a shorter text may have been found in place of a longer one.
            match = self._pattern.match(text, match.start()) or match
            yield text[start : match.start()], match[0]
            start = at = match.end()
        yield text[start:], ""

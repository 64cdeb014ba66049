"""Finds special texts in long ones without holding the interpreter for long. Pure, standard library only."""

import re
from collections.abc import Iterable, Iterator

_SLICE = 1 << 16
"""Characters that are searched in one go: a millisecond at most."""


class SpecialTexts:
    """A set of texts, to be found the longest first where several begin at one place."""

    def __init__(self, texts: Iterable[str]) -> None:
        ordered = sorted(texts, key=len, reverse=True)
        self._longest = len(ordered[0]) if ordered else 0
        self._pattern = re.compile("|".join(map(re.escape, ordered)) or r"(?!)")

    def split(self, text: str) -> Iterator[tuple[str, str]]:
        """The text as pairs of a plain run, perhaps empty, and the special text after it; the last pair has none."""
        start = at = 0  # where the run begins, and from where on nothing special is known
        while at < len(text):
            stop = at + _SLICE
            found = self._pattern.search(text, at, stop)
            if found is None:
                at = max(at + 1, stop - self._longest + 1) if stop < len(text) else len(text)
                continue
            # At the slice's end a shorter one may have been found for a longer one.
            found = self._pattern.match(text, found.start()) or found
            yield text[start : found.start()], found[0]
            start = at = found.end()
        yield text[start:], ""

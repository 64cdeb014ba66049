"""Ends a sequence's text before the first of its stop strings. Standard library only.

A stop string may be spread over any number of tokens, so text that could be the beginning of one is held back until
that is known. Linear in the text, whatever the stop strings are: it runs between the steps of all sequences.
"""

from collections.abc import Sequence


class StopStrings:
    """Filters the text of one sequence.

    Guarantees, however the text is cut into pieces: what `add` and at last `flush` return, joined, is all of it, or
    what comes before the stop string that is complete first (of those that end together, the longest). It contains no
    stop string, and at most the length of one stop string is held back.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self.is_complete = False
        """A stop string is complete; no more text is returned."""
        self._stops = [(stop, _borders(stop)) for stop in stops if stop]
        self._matched = [0] * len(self._stops)  # how many characters of each stop string the text ends with
        self._held = ""

    def add(self, text: str) -> str:
        """The text that, with this piece, is known to belong to the answer."""
        if not self._stops:
            return text
        if self.is_complete:
            return ""
        known, text = len(self._held), self._held + text
        for end in range(known, len(text)):
            complete = self._advance(text[end])
            if complete:
                self.is_complete, self._held = True, ""
                return text[: end + 1 - complete]
        end = len(text) - max(self._matched)
        self._held = text[end:]
        return text[:end]

    def flush(self) -> str:
        """The text that was held back. Call it at the end of the answer."""
        held, self._held = self._held, ""
        return held

    def _advance(self, character: str) -> int:
        """Take one character; returns the length of the longest stop string that ends with it, or 0 (KMP)."""
        complete = 0
        for number, (stop, borders) in enumerate(self._stops):
            matched = self._matched[number]
            while matched and stop[matched] != character:
                matched = borders[matched - 1]
            matched += stop[matched] == character
            self._matched[number] = matched
            if matched == len(stop):
                complete = max(complete, matched)
        return complete


def _borders(stop: str) -> list[int]:
    """For every prefix of `stop`, the length of its longest proper prefix that is also its suffix."""
    borders = [0] * len(stop)
    length = 0
    for end in range(1, len(stop)):
        while length and stop[length] != stop[end]:
            length = borders[length - 1]
        length += stop[length] == stop[end]
        borders[end] = length
    return borders

"""The markers around a model's thinking. Plain values."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """The markers around thinking, and whether an answer begins between them."""

    start: str = "<think>"
    end: str = "</think>"
    opened: bool = False
    """The prompt ends inside a block of thinking: the answer begins as thinking."""

    def after(self, prompt_end: str) -> "Thinking":
        """The markers for the answer to a prompt with this end: `opened` says whether it opens a block."""
        start = prompt_end.rfind(self.start)
        return replace(self, opened=start >= 0 and not prompt_end[start + len(self.start) :].strip())

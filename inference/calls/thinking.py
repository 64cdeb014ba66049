"""How a model marks its thinking. Plain values."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """The marks around thinking, and whether the answer begins inside of them."""

    start: str = "<think>"
    end: str = "</think>"
    opened: bool = False
    """The prompt ends inside a block of thinking: the answer begins as thinking."""

    def after(self, prompt_end: str) -> "Thinking":
        """The same for an answer to a prompt that ends in this text: `opened` says whether it opens a block."""
        start = prompt_end.rfind(self.start)
        return replace(self, opened=start >= 0 and not prompt_end[start + len(self.start) :].strip())

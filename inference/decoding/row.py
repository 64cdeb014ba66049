"""A sequence that is decoded, and what a step chooses for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mlx_lm.models.cache import TokenBuffer

from inference.decoding.sampling import Draw
from inference.decoding.scores import Scores
from inference.speculation.drafter import Drafter

Processor = Callable[[Any, Any], Any]
"""From a sequence's tokens so far (length) and its logits (1, vocabulary) to the logits to use.

One that waits for the token chosen last has an attribute `waits`, true: then no step begins before that is known.
"""


@dataclass(eq=False, slots=True, kw_only=True)
class Row:
    """A sequence from the end of its prompt on."""

    tokens: list[int]
    """All that are known, of context and answer. A decoder adds those that it chooses."""
    most: int
    """How many tokens may be chosen."""
    draw: Draw
    processors: Sequence[Processor] = ()
    top_logprobs: int | None = None
    """How many of the likeliest tokens are scored beside the chosen one; None scores nothing."""
    drafter: Drafter | None = None
    state: list[Any] | None = None
    """The state of the model after the tokens that were read; None before the first, and while a decoder has it."""
    read: int = 0
    """How many tokens were read."""
    drawn: int = 0
    """How many tokens were chosen, with the one that is being computed."""
    context: Any = field(init=False, default=None)
    """The tokens that were read, as processors get them."""

    def begin(self) -> None:
        """All tokens but the last were read."""
        self.state, self.read = None, len(self.tokens) - 1
        if self.processors:
            new_context: Any = TokenBuffer
            self.context = new_context(self.tokens[:-1])


class Choice(NamedTuple):
    """The next token of a row."""

    row: Row
    token: int
    scores: Scores | None = None
    """Of a row that asks for them."""

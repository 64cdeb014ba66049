"""Compacting a history: which generations it takes, and what comes of them. Pure but for the tokenizer.

A history that fits the window together with the request for a summary is shown to the model as it is, so that its state
comes out of the prefix cache. A longer one is read out as a transcript, piece after piece, each with the summary of the
pieces before.
"""

from functools import cached_property
from itertools import filterfalse

from inference.dialects import Dialect, template_messages
from inference.types import Message
from responses_api.errors import ContextLengthExceeded, InvalidRequest
from responses_api.protocol import shown_items
from responses_api.protocol.compaction import Compacted, Items, Split, is_instruction, split_history

from .renderer import Renderer

ASK = (
    "Write a summary of our conversation so far, for somebody who will continue it without having read it. Keep every "
    "fact, name, number, decision and open question that may matter later. Write only the summary."
)
ASK_OF_TRANSCRIPT = (
    "Below is part of a conversation{after}. Write a summary of it, for somebody who will continue the conversation "
    "without having read it. Keep every fact, name, number, decision and open question that may matter later. Write "
    "only the summary.\n\n{earlier}{piece}"
)
READ_OUT = Dialect(name="hermes", own_template=True)
"""How calls and outputs are written in a transcript."""
SPEAKERS = {"user": "User", "assistant": "Assistant", "system": "System"}

KEPT_SHARE = 16
MOST_KEPT_TOKENS = 8192
ANSWER_SHARE = 4
"""A summary is given the context's quarter at most."""


def default_keep_tokens(window: int) -> int:
    """How much of the newest turns is kept as it is, for a window of so many tokens."""
    return min(window // KEPT_SHARE, MOST_KEPT_TOKENS)


class Summariser:
    """Compacts one history. Whoever holds it runs the generations: `prompt`, then `take`, until there is no prompt.

    Raises :class:`ContextLengthExceeded` when not even one piece fits the window.
    """

    def __init__(
        self,
        *,
        items: Items,
        renderer: Renderer,
        window: int,
        max_tokens: int,
        keep_tokens: int | None = None,
    ) -> None:
        self._items = tuple(items)
        self._renderer = renderer
        self._window = window
        self.max_tokens = max(1, min(max_tokens, window // ANSWER_SHARE))
        """Most tokens of one summary."""
        self._keep_tokens = keep_tokens if keep_tokens is not None else default_keep_tokens(window)
        self._summary = ""
        self._transcript = ""
        self._piece = 0
        self._ended = False

    @cached_property
    def tokens(self) -> int:
        """Of the history as it is."""
        return self.count(self._items)

    @cached_property
    def split(self) -> Split:
        """What stays, what is to be summarised, and what is kept: several renderings."""
        return split_history(self._items, keep_tokens=self._keep_tokens, count=self.count)

    def count(self, items: Items) -> int:
        """The tokens that these items have as a prompt, with the instructions."""
        return len(self._renderer.prompt(self._renderer.messages(items)))

    def prompt(self) -> tuple[int, ...] | None:
        """What to generate from next; ``None`` when nothing is left to generate."""
        if self._ended or not self.split.older:
            return None
        if not self._transcript:
            whole = self._whole_prompt()
            if whole is not None:
                return whole
            self._transcript = self._read_out()
        return self._next_piece()

    def take(self, summary: str) -> None:
        """Take what was generated from the last prompt."""
        self._summary = summary.strip()
        self._transcript = self._transcript[self._piece :]
        self._ended = not self._transcript

    def result(self) -> Compacted:
        """What the compaction item holds: all items, without a summary, where that would be no shorter."""
        shorter = Compacted(summary=self._summary, items=self.split.retained)
        if self._summary and self.count(shorter.standing_for(self.split.instructions)) < self.tokens:
            return shorter
        return Compacted(summary="", items=tuple(filterfalse(is_instruction, self._items)))

    def _whole_prompt(self) -> tuple[int, ...] | None:
        messages = self._renderer.messages([*self.split.instructions, *self.split.older])
        if messages and messages[-1]["role"] == "user":
            messages[-1] = _user(f"{messages[-1]['content']}\n\n{ASK}")
        else:
            messages.append(_user(ASK))
        try:
            prompt = self._renderer.prompt(messages)
        except InvalidRequest:
            # Some templates want a conversation of another form; a transcript suits them all.
            return None
        return prompt if len(prompt) + self.max_tokens <= self._window else None

    def _next_piece(self) -> tuple[int, ...]:
        """The longest piece of the transcript that leaves room for its summary, found by halving."""
        # A token is seldom longer than eight letters.
        fewest, most, found = 1, min(len(self._transcript), 8 * self._window), None
        length = most
        while fewest <= most:
            prompt = self._piece_prompt(self._transcript[:length])
            if len(prompt) + self.max_tokens <= self._window:
                found, self._piece, fewest = prompt, length, length + 1
            else:
                most = length - 1
            length = (fewest + most) // 2
        if found is None:
            raise ContextLengthExceeded(
                f"The history can't be summarised in the model's context of {self._window} tokens. Ask for a shorter "
                "summary by `max_output_tokens`, or shorten `instructions`.",
                param="input",
            )
        return found

    def _piece_prompt(self, piece: str) -> tuple[int, ...]:
        earlier = f"Summary of the parts before:\n{self._summary}\n\nThis part:\n" if self._summary else ""
        text = ASK_OF_TRANSCRIPT.format(
            after=", after a summary of the parts before it, which yours replaces" if earlier else "",
            earlier=earlier,
            piece=piece,
        )
        return self._renderer.prompt([*self._renderer.messages(self.split.instructions), _user(text)])

    def _read_out(self) -> str:
        messages = template_messages(shown_items(self.split.older), READ_OUT)
        return "\n\n".join(f"{SPEAKERS[message['role']]}: {message['content']}" for message in messages)


def _user(text: str) -> Message:
    return {"role": "user", "content": text}

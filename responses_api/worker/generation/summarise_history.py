"""Compacting a history: which generations it takes, and what comes of them. Pure but for the tokenizer.

A history that fits the window together with the request for a summary is shown to the model as it is, so that its state
comes out of the prefix cache. A longer one is read out as a transcript, piece after piece, each with the summary of the
pieces before.
"""

from collections.abc import Iterator
from functools import cached_property
from itertools import filterfalse

from inference.dialects import OWN_TEMPLATE
from inference.types import Message
from responses_api.errors import ContextLengthExceeded, InvalidRequest
from responses_api.protocol import shown_items
from responses_api.protocol.items.compaction import Compacted, Items, Split, is_instruction, split_history
from responses_api.services.prompts.renderer import Renderer

ASK = (
    "Write a summary of our conversation so far, for somebody who will continue it without having read it. Keep every "
    "fact, name, number, decision and open question that may matter later. Write only the summary."
)
ASK_OF_TRANSCRIPT = (
    "Below is part of a conversation{after}. Write a summary of it, for somebody who will continue the conversation "
    "without having read it. Keep every fact, name, number, decision and open question that may matter later. Write "
    "only the summary.\n\n{earlier}{piece}"
)
SPEAKERS = {"user": "User", "assistant": "Assistant", "system": "System"}

KEPT_SHARE = 16
MOST_KEPT_TOKENS = 8192
ANSWER_SHARE = 4
"""A summary is given the context's quarter at most."""
SHORTENING = 2
"""And no more than half of what it replaces."""
LEAST_SUMMARY_TOKENS = 16
"""A shorter summary could say nothing."""
MOST_PASSES = 64
FILLED = 0.95
"""A piece of a transcript that fills so much of the room is as good as the longest."""
COUNTED_CHARACTERS = 65_536
"""Of a history too long for the window, so much is counted at once."""


def default_keep_tokens(window: int) -> int:
    """How many tokens of the newest turns are retained as they are, in a context of this length."""
    return min(window // KEPT_SHARE, MOST_KEPT_TOKENS)


class Summariser:
    """Compacts one history. Its owner runs the generations: `prompt`, then `take`, until there is no prompt.

    A summary's limit is well below what it replaces; where that leaves no room for one, nothing is generated, and
    `can_shorten` says so before. Raises :class:`ContextLengthExceeded` when not even one piece fits the window, or when
    too many would be needed.
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
        self._most_tokens = max(1, min(max_tokens, window // ANSWER_SHARE))
        # What is longer than the window could not be replayed.
        self._keep_tokens = min(window, keep_tokens if keep_tokens is not None else default_keep_tokens(window))
        self._summary = ""
        self._transcript = ""
        self._piece = 0
        self._passes = 0
        self._ended = False

    @cached_property
    def tokens(self) -> int:
        """Tokens of the history as it is; of its texts alone, where it is too long for the window."""
        messages = self._renderer.messages(self._items)
        if self._renderer.can_fit(messages, self._window):
            return len(self._renderer.prompt(messages))
        return sum(self._renderer.count_text(text) for message in messages for text in pieces(message["content"] or ""))

    def reaches(self, limit: int) -> bool:
        """Whether the history has so many tokens, counted only where its length does not say so."""
        return not self._renderer.can_fit(self._renderer.messages(self._items), limit) or self.tokens >= limit

    @cached_property
    def split(self) -> Split:
        """The instructions, what is to be summarised, and what is retained. Takes several renderings."""
        return split_history(self._items, fits=lambda items: self._renderer.fits(items, self._keep_tokens))

    @cached_property
    def max_tokens(self) -> int:
        """Most tokens of one summary."""
        return max(1, min(self._most_tokens, self._room // SHORTENING))

    @cached_property
    def can_shorten(self) -> bool:
        """Whether there is anything to summarise that a summary could be shorter than."""
        return bool(self.split.older) and self._room // SHORTENING >= LEAST_SUMMARY_TOKENS

    @cached_property
    def _room(self) -> int:
        """The tokens that a summary would have to be shorter than."""
        shortest = Compacted(summary=".", items=self.split.retained).replacing(self.split.instructions)
        return self.tokens - self.count(shortest)

    def count(self, items: Items) -> int:
        """The tokens that these items have as a prompt, with the instructions."""
        return len(self._renderer.prompt(self._renderer.messages(items)))

    def prompt(self) -> tuple[int, ...] | None:
        """What to generate from next; ``None`` when nothing is left to generate."""
        if self._ended or not self.can_shorten:
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
        self._passes += 1
        self._ended = not self._transcript

    def result(self) -> Compacted:
        """The content of the compaction item: all items, without a summary, where a summary would be no shorter."""
        shorter = Compacted(summary=self._summary, items=self.split.retained)
        if self._summary and self.count(shorter.replacing(self.split.instructions)) < self.tokens:
            return shorter
        return Compacted(summary="", items=tuple(filterfalse(is_instruction, self._items)))

    def _whole_prompt(self) -> tuple[int, ...] | None:
        messages = self._renderer.messages([*self.split.instructions, *self.split.older])
        if messages and messages[-1]["role"] == "user":
            messages[-1] = _user(f"{messages[-1]['content']}\n\n{ASK}")
        else:
            messages.append(_user(ASK))
        if not self._renderer.can_fit(messages, self._window):
            return None
        try:
            prompt = self._renderer.prompt(messages)
        except InvalidRequest:
            # Some templates want a conversation of another form; a transcript suits them all.
            return None
        return prompt if len(prompt) + self.max_tokens <= self._window else None

    def _next_piece(self) -> tuple[int, ...]:
        """A piece of the transcript, about as long as leaves room for its summary."""
        prompt = self._longest_piece()
        if prompt is None:
            raise ContextLengthExceeded(
                f"The history can't be summarised in the model's context of {self._window} tokens. Ask for a shorter "
                "summary by `max_output_tokens`, or shorten `instructions`.",
                param="input",
            )
        needed = self._passes + -(-len(self._transcript) // self._piece)
        # Later parts may be denser than the first: what was begun is not given up for that at once.
        if needed > (MOST_PASSES if not self._passes else 2 * MOST_PASSES):
            raise ContextLengthExceeded(
                f"Summarising the history would take {needed} passes through the model's context of {self._window} "
                f"tokens, and {MOST_PASSES} are the most. Compact it in parts, or with a model that has a longer "
                "context.",
                param="input",
            )
        return prompt

    def _longest_piece(self) -> tuple[int, ...] | None:
        """The prompt of the next piece, found by halving from a first guess; ``None`` when not one character fits."""
        room = self._window - self.max_tokens
        # A token is seldom longer than eight characters.
        fewest, most, found = 1, min(len(self._transcript), 8 * self._window), None
        length = most
        while fewest <= most:
            prompt = self._piece_prompt(self._transcript[:length])
            if len(prompt) <= room:
                found, self._piece, fewest = prompt, length, length + 1
                if len(prompt) > FILLED * room:
                    break
                length = (fewest + most) // 2
            else:
                most = length - 1
                guess = int(length * room / len(prompt) * FILLED) if found is None else 0
                length = guess if fewest <= guess <= most else (fewest + most) // 2
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
        messages = OWN_TEMPLATE.template_messages(shown_items(self.split.older))
        return "\n\n".join(f"{SPEAKERS[message['role']]}: {message['content']}" for message in messages)


def pieces(text: str) -> Iterator[str]:
    """The text, cut so that counting its tokens takes no long step."""
    for start in range(0, len(text), COUNTED_CHARACTERS):
        yield text[start : start + COUNTED_CHARACTERS]


def _user(text: str) -> Message:
    return {"role": "user", "content": text}

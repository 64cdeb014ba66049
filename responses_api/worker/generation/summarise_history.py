"""Compacts a history: the generations that it needs, and their result. Pure except for the tokenizer.

A history that fits the window together with the request for a summary is shown to the model as it is, so that its state
comes from the prefix cache. A longer one becomes a transcript that is summarised piece by piece, each piece with the
summary of the pieces before it.
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
"""A summary has at most as many tokens as the context, divided by this."""
SHORTENING = 2
"""A summary has at most as many tokens as the text that it replaces, divided by this."""
LEAST_SUMMARY_TOKENS = 16
"""A shorter summary would be useless."""
MOST_PASSES = 64
FILLED = 0.95
"""A piece of a transcript that fills this part of the available tokens need not be longer."""
COUNTED_CHARACTERS = 65_536
"""How much of a history that is too long for the window is tokenized at once, to count its tokens."""


def default_keep_tokens(window: int) -> int:
    """How many tokens of the newest turns are retained as they are, in a context of this length."""
    return min(window // KEPT_SHARE, MOST_KEPT_TOKENS)


class Summariser:
    """Compacts one history. Its owner runs the generations: `prompt`, then `take`, until there is no prompt.

    A summary has at most half as many tokens as the text that it replaces. If that is too few, nothing is generated, as
    `can_shorten` says in advance. Raises :class:`ContextLengthExceeded` when not even one piece fits the window, or
    when too many would be needed.
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
        # Items that are longer than the window could not be sent again.
        self._keep_tokens = min(window, keep_tokens if keep_tokens is not None else default_keep_tokens(window))
        self._summary = ""
        self._transcript = ""
        self._piece = 0
        self._passes = 0
        self._ended = False

    @cached_property
    def tokens(self) -> int:
        """Tokens of the rendered history; of its texts only, if it is too long for the window."""
        messages = self._renderer.messages(self._items)
        if self._renderer.can_fit(messages, self._window):
            return len(self._renderer.prompt(messages))
        return sum(self._renderer.count_text(text) for message in messages for text in pieces(message["content"] or ""))

    def reaches(self, limit: int) -> bool:
        """Whether the history has at least ``limit`` tokens. They are counted only if its length doesn't decide."""
        return not self._renderer.can_fit(self._renderer.messages(self._items), limit) or self.tokens >= limit

    @cached_property
    def split(self) -> Split:
        """The instructions, the items to summarise, and the items to retain. Takes several renderings."""
        return split_history(self._items, fits=lambda items: self._renderer.fits(items, self._keep_tokens))

    @cached_property
    def max_tokens(self) -> int:
        """Most tokens of one summary."""
        return max(1, min(self._most_tokens, self._room // SHORTENING))

    @cached_property
    def can_shorten(self) -> bool:
        """Whether there are items to summarise, long enough for a summary to be shorter."""
        return bool(self.split.older) and self._room // SHORTENING >= LEAST_SUMMARY_TOKENS

    @cached_property
    def _room(self) -> int:
        """The number of tokens that a summary has to be shorter than."""
        shortest = Compacted(summary=".", items=self.split.retained).replacing(self.split.instructions)
        return self.tokens - self.count(shortest)

    def count(self, items: Items) -> int:
        """The tokens of a prompt with these items and the instructions."""
        return len(self._renderer.prompt(self._renderer.messages(items)))

    def prompt(self) -> tuple[int, ...] | None:
        """The next prompt; ``None`` when nothing is left to generate."""
        if self._ended or not self.can_shorten:
            return None
        if not self._transcript:
            whole = self._whole_prompt()
            if whole is not None:
                return whole
            self._transcript = self._as_transcript()
        return self._next_piece()

    def take(self, summary: str) -> None:
        """Take the summary that was generated from the last prompt."""
        self._summary = summary.strip()
        self._transcript = self._transcript[self._piece :]
        self._passes += 1
        self._ended = not self._transcript

    def result(self) -> Compacted:
        """The content of the compaction item. If the summary is not shorter, it has all items and no summary."""
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
            # Some templates require another form of conversation; a transcript works with all of them.
            return None
        return prompt if len(prompt) + self.max_tokens <= self._window else None

    def _next_piece(self) -> tuple[int, ...]:
        """The prompt of the next piece of the transcript, about as long as the window allows with its summary."""
        prompt = self._longest_piece()
        if prompt is None:
            raise ContextLengthExceeded(
                f"The history can't be summarised in the model's context of {self._window} tokens. Ask for a shorter "
                "summary by `max_output_tokens`, or shorten `instructions`.",
                param="input",
            )
        needed = self._passes + -(-len(self._transcript) // self._piece)
        # Later parts may have more tokens per character than the first: allow more passes once there was one.
        if needed > (MOST_PASSES if not self._passes else 2 * MOST_PASSES):
            raise ContextLengthExceeded(
                f"Summarising the history would take {needed} passes through the model's context of {self._window} "
                f"tokens, and {MOST_PASSES} are the most. Compact it in parts, or with a model that has a longer "
                "context.",
                param="input",
            )
        return prompt

    def _longest_piece(self) -> tuple[int, ...] | None:
        """The prompt of the next piece, found by bisection from a first guess; ``None`` when not one character fits."""
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

    def _as_transcript(self) -> str:
        messages = OWN_TEMPLATE.template_messages(shown_items(self.split.older))
        return "\n\n".join(f"{SPEAKERS[message['role']]}: {message['content']}" for message in messages)


def pieces(text: str) -> Iterator[str]:
    """The text in pieces that are tokenized quickly."""
    for start in range(0, len(text), COUNTED_CHARACTERS):
        yield text[start : start + COUNTED_CHARACTERS]


def _user(text: str) -> Message:
    return {"role": "user", "content": text}

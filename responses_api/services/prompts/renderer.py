"""Renders items to a prompt, in the same way for answers, for counting and for summaries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inference.calls import Tool
from inference.prompts import template_tools, thinking_arguments
from inference.types import ChatTokenizer, Message, ModelError
from responses_api.errors import InvalidRequest
from responses_api.interruptions import Check, unchecked
from responses_api.protocol import CreateResponse, shown_items
from responses_api.protocol.requests.compact import CompactRequest

from .reasoning_echo import reasoning_echo

Items = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Renderer:
    """A model's template with a request's arguments for it, except for the history."""

    tokenizer: ChatTokenizer
    instructions: str = ""
    tools: tuple[Tool, ...] = ()
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    drops_old_reasoning: bool = False
    """Whether only the reasoning since the user's last message is rendered."""
    scope: str = ""
    """The scope in which thinking is looked up that a client has left out; empty to look up none."""
    check: Check = unchecked
    """Called before each long step; may raise to stop it."""

    @classmethod
    def of(
        cls,
        request: CreateResponse | CompactRequest,
        tokenizer: ChatTokenizer,
        *,
        scope: str = "",
        check: Check = unchecked,
    ) -> "Renderer":
        """The renderer of a request."""
        scope = scope if tokenizer.dialect.thinks else ""
        if isinstance(request, CompactRequest):
            return cls(tokenizer=tokenizer, instructions=request.instructions or "", scope=scope, check=check)
        instructions = (request.instructions, request.text.format.instruction)
        return cls(
            tokenizer=tokenizer,
            instructions="\n\n".join(filter(None, instructions)),
            tools=request.shown_tools,
            template_kwargs={
                **thinking_arguments(request.reasoning.effort, tokenizer.dialect.switches),
                **request.chat_template_kwargs,
            },
            drops_old_reasoning=request.reasoning.context == "current_turn",
            scope=scope,
            check=check,
        )

    def messages(self, items: Items) -> list[Message]:
        """The messages of a conversation, oldest first."""
        if self.scope:
            items = reasoning_echo().restore(self.scope, items)
        if self.drops_old_reasoning:
            last = max((number for number, item in enumerate(items) if is_from_user(item)), default=-1)
            items = [item for number, item in enumerate(items) if number > last or item["type"] != "reasoning"]
        shown = shown_items(items, self.instructions)
        return self.tokenizer.dialect.template_messages(shown, tools=self.tools, show_reasoning=True)

    def prompt(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """The token ids. Raises :class:`InvalidRequest` when the template fails, and whatever ``check`` raises."""
        self.check()
        own_template = self.tokenizer.dialect.own_template
        try:
            return self.tokenizer.render(
                messages,
                tools=() if own_template else template_tools(self.tools),
                template_kwargs=self.template_kwargs,
            )
        except ModelError as error:
            what = "this input with these `chat_template_kwargs`" if self.template_kwargs else "this input"
            raise InvalidRequest(f"The model's chat template can't render {what}: {error}", param="input") from error

    def count_text(self, text: str) -> int:
        """The number of tokens in a text by itself."""
        self.check()
        return len(self.tokenizer.encode_markup(text))

    def fits(self, items: Items, limit: int) -> bool:
        """Whether a conversation has at most ``limit`` tokens."""
        messages = self.messages(items)
        return self.can_fit(messages, limit) and len(self.prompt(messages)) <= limit

    def can_fit(self, messages: Sequence[Message], context: int) -> bool:
        """Whether the prompt may have at most ``context`` tokens; False when its length in bytes rules that out.

        Checked first because tokenising takes 2 s per megabyte, and a tokenizer does one text at a time.
        """
        # White space at the ends is not counted, since templates may strip it.
        size = sum(len((message["content"] or "").strip().encode(errors="replace")) for message in messages)
        longest = self.tokenizer.longest_token if size > context else 0
        return not longest or size <= context * longest


def is_from_user(item: Mapping[str, Any]) -> bool:
    """Whether a turn begins with this item."""
    return bool(item["type"] == "message" and item["role"] == "user")

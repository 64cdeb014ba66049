"""How the models of one family call tools and think, and what their chat templates add. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from inference.calls.parser import Parser
from inference.calls.thinking import Thinking
from inference.calls.tools import Tool
from inference.grammars.answer import AnswerForm, Choice, answer_grammar
from inference.prompts import ChatMessage, Item, MessageStyle


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The dialect of a family, defined in its own file, or of one model, as `detect` completes it."""

    name: str
    parser: type[Parser]
    """The parser of answers."""
    form: AnswerForm
    """The grammar of answers."""
    style: MessageStyle = field(default_factory=MessageStyle)
    """The form of messages that the templates expect."""

    template_markers: tuple[str, ...] = ()
    """Chat templates that contain one of these are of this dialect."""
    token_markers: tuple[str, ...] = ()
    """Special tokens of this dialect, for templates that take tools but don't show calls."""
    thinks_in_channels: bool = False
    """Thinking is part of the dialect's other markup, and has no separate markers."""

    thinking: Thinking | None = None
    """The markers of one model's thinking; None if it doesn't think, or if `thinks_in_channels`."""
    switches: tuple[str, ...] = ()
    """The arguments of one model's template that turn thinking on and off, or set its effort."""

    @property
    def thinks(self) -> bool:
        """The model may think before it answers."""
        return self.thinking is not None or self.thinks_in_channels

    @property
    def own_template(self) -> bool:
        """The model's template takes no tools: they are shown in the messages, by our own template."""
        return not self.style.takes_tools

    @property
    def markers(self) -> frozenset[str]:
        """The markers of calls and thinking. The engine emits them as text, also those that are special tokens."""
        thinking = (self.thinking.start, self.thinking.end) if self.thinking else ()
        return frozenset((*self.parser.starts, *self.parser.ends, *self.parser.inner, *thinking))

    def new_parser(self, tools: Sequence[Tool] = (), thinking: Thinking | None = None) -> Parser:
        """A parser for one answer; without tools, no text is read as a call."""
        return self.parser(tools, thinking)

    def answer_grammar(
        self,
        tools: Sequence[Tool],
        *,
        choice: Choice = "auto",
        parallel: bool = True,
        thinking: Thinking | None = None,
        tokens: Mapping[str, int] | None = None,
        answer: str | None = None,
    ) -> str:
        """Lark for a whole answer: see `inference.grammars.answer.answer_grammar`."""
        return answer_grammar(
            self.form, tools, choice=choice, parallel=parallel, thinking=thinking, tokens=tokens, answer=answer
        )

    def template_messages(
        self, items: Iterable[Item], *, tools: Sequence[Tool] = (), show_reasoning: bool = False
    ) -> list[ChatMessage]:
        """The messages for the model's template. With `own_template` they contain the tools; else the template takes
        `template_tools(tools)`."""
        return self.style.messages(items, tools=tools, thinking=self.thinking, show_reasoning=show_reasoning)

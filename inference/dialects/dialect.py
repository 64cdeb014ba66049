"""A dialect: how models of one family call tools and think, with what one model's chat template adds to that. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from inference.calls.parser import Parser
from inference.calls.thinking import Thinking
from inference.calls.tools import Tool
from inference.grammars.answer import AnswerForm, Choice, answer_grammar
from inference.prompts import ChatMessage, Item, MessageStyle


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One per family of models, in a file of its own; `detect` fills in what a model's template says."""

    name: str
    parser: type[Parser]
    """Reads answers."""
    form: AnswerForm
    """Writes the grammar of answers."""
    style: MessageStyle = field(default_factory=MessageStyle)
    """How the templates read the messages of a conversation."""

    template_marks: tuple[str, ...] = ()
    """A chat template that contains one of these is of this dialect."""
    token_marks: tuple[str, ...] = ()
    """Special tokens that tell the dialect where the template takes tools and doesn't show calls."""
    thinks_in_channels: bool = False
    """Thinking is a part of the dialect's own markup, and has no marks."""

    thinking: Thinking | None = None
    """Of one model: how it marks its thinking; None for models that don't think, and where `thinks_in_channels`."""
    switches: tuple[str, ...] = ()
    """Of one model: the arguments of its template that turn thinking on and off, or say how much."""

    @property
    def thinks(self) -> bool:
        """The model may think before it answers."""
        return self.thinking is not None or self.thinks_in_channels

    @property
    def own_template(self) -> bool:
        """The model's template takes no tools: they are shown in the messages, by a template of ours."""
        return not self.style.takes_tools

    @property
    def markers(self) -> frozenset[str]:
        """The markup of calls and thinking. The engine shows it as text, also where it is a special token."""
        thinking = (self.thinking.start, self.thinking.end) if self.thinking else ()
        return frozenset((*self.parser.starts, *self.parser.ends, *self.parser.inner, *thinking))

    def new_parser(self, tools: Sequence[Tool] = (), thinking: Thinking | None = None) -> Parser:
        """A parser for one answer; without tools nothing is taken for a call."""
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
        """The messages for the model's template. With `own_template` the tools are in them; else pass them along, as
        `template_tools` writes them."""
        return self.style.messages(items, tools=tools, thinking=self.thinking, show_reasoning=show_reasoning)

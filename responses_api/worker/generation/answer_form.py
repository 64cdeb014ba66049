"""The form of an answer: the constraint on the decoder, and the parser of its output."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from inference.calls import Parser, Thinking
from inference.grammars import json_value
from inference.prompts import thinking_budget
from inference.types import ChatTokenizer, Constraint, ThinkingLimit
from responses_api.protocol import CreateResponse

TAIL = 32
"""How many tokens at the end of a prompt show whether it opens a block of thinking."""
ANY_OBJECT = '{"type": "object"}'


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerForm:
    """How one answer is to be generated and read."""

    parser: Parser
    constraint: Constraint | None
    thinking: ThinkingLimit | None
    """The limit on its thinking; ``None`` for models that don't think, or whose thinking can't be ended."""


def answer_form(
    request: CreateResponse, prompt: Sequence[int], tokenizer: ChatTokenizer, *, max_tokens: int
) -> AnswerForm:
    """The form of the answer to a request with this prompt."""
    dialect = tokenizer.dialect
    thinking = dialect.thinking
    if thinking is not None:
        thinking = thinking.after(tokenizer.decode(prompt[-TAIL:]))
    return AnswerForm(
        parser=dialect.new_parser(request.offered_tools, thinking),
        constraint=_constraint(request, tokenizer, thinking),
        thinking=_limit(request, thinking, tokenizer, max_tokens),
    )


def _limit(
    request: CreateResponse, thinking: Thinking | None, tokenizer: ChatTokenizer, max_tokens: int
) -> ThinkingLimit | None:
    if thinking is None:
        return None
    return ThinkingLimit(
        tokens=thinking_budget(request.reasoning.effort, max_tokens),
        start=thinking.start,
        end=thinking.end,
        opened=thinking.opened,
        closing=tokenizer.encode_markup(f"\n{thinking.end}\n\n"),
    )


def _constraint(request: CreateResponse, tokenizer: ChatTokenizer, thinking: Thinking | None) -> Constraint | None:
    """Free text until a call begins; JSON if it was requested, after the thinking."""
    form, tools = request.text.format.constraint, request.offered_tools
    if not tools and (form is None or not tokenizer.dialect.thinks):
        return form
    grammar = tokenizer.dialect.answer_grammar(
        tools,
        choice="required" if request.must_call else "auto",
        parallel=request.parallel_tool_calls,
        thinking=thinking,
        tokens=tokenizer.special_tokens,
        answer=None if form is None else json_value(json.loads(form.text or ANY_OBJECT)),
    )
    return Constraint(kind="lark", text=grammar)

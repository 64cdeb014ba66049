"""Fits a prompt into the context, in the same way for generating and for counting, so that both see the same tokens."""

from inference.types import ChatTokenizer, ModelInfo
from responses_api.errors import ContextLengthExceeded
from responses_api.interruptions import Check, unchecked
from responses_api.protocol import CreateResponse, check_tool_pairs, input_items
from responses_api.protocol.items.compaction import is_instruction

from .blobs import Take, expand_history
from .renderer import Items, Renderer, is_from_user

ANSWER_DIVISOR = 8
"""With `truncation: auto`, an eighth of the context is left for the answer, or as much as the request asks for."""


def render_prompt(
    *,
    request: CreateResponse,
    history: Items,
    sent: Items,
    tokenizer: ChatTokenizer,
    info: ModelInfo,
    scope: str = "",
    check: Check = unchecked,
) -> tuple[int, ...]:
    """The prompt of a request over its history; ``scope`` is the owner of the remembered thinking.

    With `truncation: auto`, the oldest turns are left out until the prompt fits: whole turns, each from a user's
    message to before the next one, so that no call is separated from its output. System and developer messages stay.
    Raises an :class:`ApiError` when the template fails, or when the prompt doesn't fit.
    """
    context = info.context_length
    limit = context - (_answer_room(request, info) if request.truncation == "auto" else 1)
    renderer, items = Renderer.of(request, tokenizer, scope=scope, check=check), [*history, *sent]
    prompt = _fitting(items, renderer, context)
    if prompt is not None and len(prompt) <= limit:
        return prompt
    if request.truncation == "auto":
        truncated = _longest_suffix(items, limit, renderer=renderer, context=context)
        if truncated is not None:
            return truncated
    size = f"more than {context}" if prompt is None else str(len(prompt))
    reason = f"the model's context of {context} tokens leaves no room for an answer"
    if info.own_context_length is not None:
        reason = (
            f"this server has memory for {context} of the {info.own_context_length} tokens of the model's context "
            "(RESPONSES_MEMORY_BYTES), which leaves no room for an answer"
        )
    raise ContextLengthExceeded(
        f"The input has {size} tokens, and {reason}. Shorten the input or the history.", param="input"
    )


def count_prompt(
    *,
    request: CreateResponse,
    history: Items,
    owner: str,
    take: Take,
    tokenizer: ChatTokenizer,
    info: ModelInfo,
    scope: str = "",
    check: Check = unchecked,
) -> int:
    """The number of tokens in the prompt of a create request."""
    history, sent = history_and_sent(history, input_items(request), owner=owner, take=take)
    prompt = render_prompt(
        request=request, history=history, sent=sent, tokenizer=tokenizer, info=info, scope=scope, check=check
    )
    return len(prompt)


def history_and_sent(history: Items, sent: Items, *, owner: str, take: Take) -> tuple[Items, Items]:
    """Both lists with compaction items expanded; the expanded items count as history. ``take`` gets the size of blobs
    before they are unpacked.

    Raises an :class:`ApiError` for a compaction item of another owner, and for a call or an output without its pair.
    """
    items = expand_history([*history, *sent], owner=owner, take=take)
    check_tool_pairs((), items)
    first = max(0, len(items) - len(sent))
    return items[:first], items[first:]


def _answer_room(request: CreateResponse, info: ModelInfo) -> int:
    wanted = request.max_output_tokens or info.context_length // ANSWER_DIVISOR
    return max(1, min(wanted, info.context_length // 2))


def _fitting(items: Items, renderer: Renderer, context: int) -> tuple[int, ...] | None:
    """The prompt; ``None`` when its length shows that it can't fit."""
    messages = renderer.messages(items)
    return renderer.prompt(messages) if renderer.can_fit(messages, context) else None


def _longest_suffix(items: Items, limit: int, *, renderer: Renderer, context: int) -> tuple[int, ...] | None:
    """The prompt of as many whole turns from the end as fit, found by bisection; ``None`` when not even one fits."""
    starts = [number for number, item in enumerate(items) if is_from_user(item)]
    fewest, most, longest = 1, len(starts) - 1, None
    while fewest <= most:
        dropped = (fewest + most) // 2
        instructions = [item for item in items[: starts[dropped]] if is_instruction(item)]
        suffix = [*instructions, *items[starts[dropped] :]]
        prompt = _fitting(suffix, renderer, context)
        if prompt is not None and len(prompt) <= limit:
            longest, most = prompt, dropped - 1
        else:
            fewest = dropped + 1
    return longest

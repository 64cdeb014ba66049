"""From a claimed row to a prompt: the worker's part of admission, with everything that needs a tokenizer.

A history that is to be compacted needs generations before the answer: see :class:`Compacting`.
"""

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from django.conf import settings

from inference.calls import Parser
from inference.types import ChatTokenizer, Chunk, GenerationRequest, ModelInfo, Sampling
from responses_api.ids import new_id
from responses_api.interruptions import Check, unchecked
from responses_api.models import Response
from responses_api.protocol import CreateResponse, objects, restore_create, sent_items
from responses_api.protocol.items.compaction import Item, is_summary
from responses_api.protocol.objects.compaction import COMPACTION_OBJECT, UncountedHistory
from responses_api.protocol.objects.items import CompactionObject
from responses_api.protocol.requests.compact import SUMMARY_TOKENS, CompactRequest, restore_compact
from responses_api.selectors.history import history_items, history_size
from responses_api.services.prompts.assemble_history import COMPACTING, Assembly, assembling
from responses_api.services.prompts.blobs import Take, seal_compaction
from responses_api.services.prompts.reasoning_echo import HistoryDigest, echo_scope
from responses_api.services.prompts.render_prompt import history_and_sent, render_prompt
from responses_api.services.prompts.renderer import Renderer
from responses_api.streaming.token_counts import TokenCounts

from .answer_form import answer_form
from .read_sampling import read_sampling
from .summarise_history import Summariser, default_keep_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedHistory:
    """A finished compaction: the item for the output, and the tokens of the input before and after it."""

    encrypted_content: str
    tokens_before: int
    tokens_after: int
    announced: bool
    """Whether the stream has the events of `context_management`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A request ready for the engine, with everything that will be stored of it."""

    generation: GenerationRequest | None
    """``None`` when nothing is generated: the request asked for a compaction only."""
    input_items: list[objects.Item]
    body: objects.Response | UncountedHistory
    compacted: CompactedHistory | None = None
    spent: TokenCounts = field(default_factory=TokenCounts)
    """The tokens of the compaction."""
    request: CreateResponse | None = None
    """``None`` for `/responses/compact`."""
    history: HistoryDigest | None = None
    """The texts before the answer; ``None`` if no thinking is remembered."""
    scope: str = ""
    """The scope in which its thinking is remembered."""
    parser: Parser | None = None
    """Reads the answer; ``None`` when nothing is generated."""

    @property
    def prompt_tokens(self) -> int:
        """The tokens of the prompt; 0 without one."""
        return len(self.generation.prompt) if self.generation is not None else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """The content of a claimed row."""

    row: Response
    request_id: str
    request: CreateResponse | CompactRequest
    sent: list[objects.Item]
    items: list[Item]
    """The whole history: the stored items and those of the request."""
    body: objects.Response
    tokenizer: ChatTokenizer
    info: ModelInfo
    cache_scope: str
    check: Check

    @property
    def scope(self) -> str:
        """The scope in which this model's thinking is remembered."""
        return echo_scope(self.cache_scope, self.info.name)

    @property
    def holder(self) -> str:
        """Whose deletion drops what only this request has cached; a request that isn't stored can't be deleted."""
        return self.row.public_id if self.row.store else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """An earlier worker's preparation of a job."""

    prompt: tuple[int, ...]
    """Empty when nothing is generated."""
    compacted: CompactedHistory | None
    spent: TokenCounts


def prepare_generation(
    *,
    row: Response,
    request_id: str,
    tokenizer: ChatTokenizer,
    info: ModelInfo,
    cache_scope: str,
    continuation: Continuation | None = None,
    check: Check = unchecked,
) -> "Prepared | Compacting":
    """Read the history, render the prompt, check that it fits. Raises an :class:`ApiError` for the client;
    ``check`` is called between the steps and may raise.

    With a ``continuation``, the prompt is that of the earlier worker.
    """
    with assembling(cache_scope) as assembly:
        assembly.add(history_size(row.parent_id))
        job = _read_job(
            row=row,
            request_id=request_id,
            tokenizer=tokenizer,
            info=info,
            cache_scope=cache_scope,
            check=check,
            take=assembly.add,
        )
        request = job.request
        if continuation is not None:
            return _continued(job, continuation)
        if isinstance(request, CompactRequest) or request.asks_for_compaction or request.context_management:
            compacting = Compacting(job)
            if compacting.is_due():
                compacting.hold(assembly.size + len(row.request))
                return compacting
        assert isinstance(request, CreateResponse)
        return _answer(job, request, job.items)


def _read_job(
    *,
    row: Response,
    request_id: str,
    tokenizer: ChatTokenizer,
    info: ModelInfo,
    cache_scope: str,
    check: Check,
    take: Take,
) -> _Job:
    body = row.body_dict()
    if not row.background:
        # By the database's clock. A job's time was published when it was admitted.
        body["created_at"] = int(row.created_at.timestamp())
    is_compaction = body["object"] == COMPACTION_OBJECT
    request = restore_compact(row.request) if is_compaction else restore_create(row.request)
    history = history_items(row.parent_id)
    sent = sent_items(request, response_id=row.public_id, used={item["id"] for item in history})
    older, newer = history_and_sent(history, sent, owner=cache_scope, take=take)
    return _Job(
        row=row,
        request_id=request_id,
        request=request,
        sent=sent,
        items=[*older, *newer],
        body=body,
        tokenizer=tokenizer,
        info=info,
        cache_scope=cache_scope,
        check=check,
    )


def _continued(job: _Job, before: Continuation) -> Prepared:
    assert isinstance(job.request, CreateResponse)
    compacted, spent = before.compacted, before.spent
    if not before.prompt:
        return Prepared(
            generation=None,
            input_items=job.sent,
            body=job.body,
            compacted=compacted,
            spent=spent,
            request=job.request,
        )
    # A compacted history is in a blob, and no thinking is remembered of it.
    items = [] if compacted is not None else job.items
    return _with_prompt(job, job.request, before.prompt, items, compacted=compacted, spent=spent)


def _answer(
    job: _Job,
    request: CreateResponse,
    items: list[Item],
    *,
    compacted: CompactedHistory | None = None,
    spent: TokenCounts | None = None,
) -> Prepared:
    first = max(0, len(items) - len(job.sent))
    prompt = render_prompt(
        request=request,
        history=items[:first],
        sent=items[first:],
        tokenizer=job.tokenizer,
        info=job.info,
        scope=job.scope,
        check=job.check,
    )
    return _with_prompt(job, request, prompt, items, compacted=compacted, spent=spent)


def _with_prompt(
    job: _Job,
    request: CreateResponse,
    prompt: tuple[int, ...],
    items: list[Item],
    *,
    compacted: CompactedHistory | None = None,
    spent: TokenCounts | None = None,
) -> Prepared:
    room = job.info.context_length - len(prompt)
    limit = room if request.max_output_tokens is None else min(room, request.max_output_tokens)
    form = answer_form(request, prompt, job.tokenizer, max_tokens=limit)
    return Prepared(
        generation=GenerationRequest(
            id=job.request_id,
            prompt=prompt,
            max_tokens=limit,
            sampling=read_sampling(
                request, temperature=job.body["temperature"], top_p=job.body["top_p"], vocab_size=job.info.vocab_size
            ),
            stop=request.stop_strings,
            constraint=form.constraint,
            thinking=form.thinking,
            top_logprobs=request.top_logprobs if request.wants_logprobs else None,
            cache_scope=job.cache_scope,
            cache_key=request.prompt_cache_key or "",
            cache_holder=job.holder,
            cache_on_disk=_may_be_on_disk(job),
            cuts=job.tokenizer.cuts(prompt),
            priority=job.row.priority,
        ),
        input_items=job.sent,
        body=job.body,
        compacted=compacted,
        spent=spent or TokenCounts(),
        request=request,
        parser=form.parser,
        history=HistoryDigest.of(items) if job.tokenizer.dialect.thinks else None,
        scope=job.scope,
    )


def _may_be_on_disk(job: _Job) -> bool:
    """Whether state of the request may be written to the disk: not if it isn't stored, nor if it asks for memory."""
    return job.row.store and job.request.prompt_cache_retention != "in_memory"


class Compacting:
    """A request whose history is compacted first. Its owner runs what `next` returns, then calls `feed` and `take`."""

    def __init__(self, job: _Job) -> None:
        self._job = job
        own = job.request if isinstance(job.request, CompactRequest) else None
        self._summariser = Summariser(
            items=job.items,
            renderer=Renderer.of(job.request, job.tokenizer, scope=job.scope, check=job.check),
            window=job.info.context_length,
            max_tokens=SUMMARY_TOKENS if own is None else own.max_output_tokens,
            keep_tokens=self._keep_tokens(),
        )
        self._passes = 0
        self._text: list[str] = []
        self._spent = TokenCounts()

    def _keep_tokens(self) -> int | None:
        """Tokens of the newest turns to retain: well below the threshold, which would be reached again at once
        otherwise.
        """
        if isinstance(self._job.request, CompactRequest):
            return self._job.request.keep_tokens
        threshold = self._threshold()
        return None if threshold is None else default_keep_tokens(min(self._job.info.context_length, 4 * threshold))

    def _threshold(self) -> int | None:
        policies = () if isinstance(self._job.request, CompactRequest) else self._job.request.context_management
        return policies[0].compact_threshold if policies else None

    def is_due(self) -> bool:
        """Whether to compact now: the request asks for it, or its history has reached the threshold."""
        request = self._job.request
        if isinstance(request, CompactRequest) or request.asks_for_compaction:
            return True
        threshold = self._threshold()
        limit = self._job.info.context_length
        if threshold is not None:
            limit = min(limit, threshold)
        return self._summariser.reaches(limit)

    def hold(self, size: int) -> None:
        """Count its bytes until it is released. Raises :class:`Overloaded` when the budget is used up."""
        assembly = Assembly(self._job.cache_scope, COMPACTING)
        assembly.add(min(size, settings.RESPONSES_ASSEMBLY_MAX_BYTES))
        weakref.finalize(self, assembly.give_back)

    def next(self) -> GenerationRequest | Prepared:
        """The next summary to generate, or the result. Raises an :class:`ApiError` if the history is too long."""
        prompt = self._summariser.prompt()
        if prompt is None:
            return self._result()
        self._passes += 1
        self._spent.input += len(prompt)
        return GenerationRequest(
            id=f"{self._job.request_id}.summary-{self._passes}",
            prompt=prompt,
            max_tokens=self._summariser.max_tokens,
            sampling=Sampling(temperature=0),
            cache_scope=self._job.cache_scope,
            cache_key=self._job.request.prompt_cache_key or "",
            cache_holder=self._job.holder,
            cache_on_disk=_may_be_on_disk(self._job),
            cuts=self._job.tokenizer.cuts(prompt),
            priority=self._job.row.priority,
        )

    def feed(self, chunks: Sequence[Chunk]) -> None:
        """Take the engine's new chunks of the summary."""
        self._spent.count(chunks)
        self._text += [chunk.text for chunk in chunks]

    def take(self) -> None:
        """The summary has ended, by itself or at its limit."""
        self._summariser.take("".join(self._text))
        self._text.clear()

    def _result(self) -> Prepared:
        job, content = self._job, self._summariser.result()
        if isinstance(job.request, CreateResponse) and not (content.summary or job.request.asks_for_compaction):
            return _answer(job, job.request, job.items, spent=self._spent)
        blob = seal_compaction(content, owner=job.cache_scope)
        instructions = self._summariser.split.instructions
        if isinstance(job.request, CompactRequest):
            item: CompactionObject = {"id": new_id("cmp_"), "type": "compaction", "encrypted_content": blob}
            listed = [kept for kept in (*instructions, *content.items) if not is_summary(kept)]
            history = cast("UncountedHistory", job.body)
            body: UncountedHistory = {**history, "output": [*cast("list[objects.Item]", listed), item]}
            return Prepared(generation=None, input_items=[], body=body, spent=self._spent)
        items = content.replacing(instructions)
        compacted = CompactedHistory(
            encrypted_content=blob,
            tokens_before=self._summariser.tokens,
            tokens_after=self._summariser.count(items),
            announced=bool(job.request.context_management),
        )
        if job.request.asks_for_compaction:
            return Prepared(
                generation=None,
                input_items=job.sent,
                body=job.body,
                compacted=compacted,
                spent=self._spent,
                request=job.request,
            )
        return _answer(job, job.request, items, compacted=compacted, spent=self._spent)

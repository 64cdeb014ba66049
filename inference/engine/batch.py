"""All running sequences of one model, advanced step by step on mlx-lm's BatchGenerator. One thread owns it.

A step decodes one token of every generating sequence and also reads at most `prefill_step` tokens of prompts: no prompt
delays a running stream for longer than that. BatchGenerator alone would pad a batch of prompts to the
longest and read it whole. So long prompts are read here, one slice per step, and handed over with their state; short
ones are handed over directly, as many of similar length as fit in one slice.
"""

import logging
from itertools import groupby
from typing import Any

import mlx.core as mx
from mlx_lm.generate import BatchGenerator
from mlx_lm.models.cache import make_prompt_cache

from inference.constraints.compiler import Compiler
from inference.constraints.masks import Masks
from inference.constraints.matching import Matcher
from inference.engine.logits import Float32Logits, Processor, guide_among, processors_for
from inference.engine.logprobs import Scores, Spelling, score_responses
from inference.engine.model_loading import LoadedModel
from inference.engine.prompt_queue import PromptQueue
from inference.engine.sampling import sampler_for
from inference.engine.sequence import Sequence, request_error
from inference.engine.thinking import ThinkingWatch
from inference.prefix_cache.prefix_cache import PrefixCache
from inference.speculation.generation_batch import SpeculatingBatch
from inference.speculation.options import SpeculationOptions
from inference.types import Chunk, Finish, GenerationRequest, ModelError, ModelInfo

log = logging.getLogger(__name__)

_COMPILING_SECONDS = 0.005
"""How long a batch without other work waits for a constraint per step."""


class Batch:
    """Guarantees a final chunk for every sequence added. When one fails, the others continue."""

    def __init__(
        self,
        loaded: LoadedModel,
        info: ModelInfo,
        *,
        batch_size: int,
        prefill_step: int,
        prefix_cache: PrefixCache,
        speculation: SpeculationOptions | None = None,
    ) -> None:
        self._loaded = loaded
        self._info = info
        self._batch_size, self._prefill_step = batch_size, prefill_step
        self._speculation = speculation
        self._prefix_cache = prefix_cache
        self._spelling = Spelling(loaded.new_detokenizer)
        self._compiler, self._masks = Compiler(), Masks()
        self._prompts = PromptQueue(prefill_step)
        self._generating: dict[int, Sequence] = {}
        self._generator = self._new_generator()

    def __len__(self) -> int:
        return len(self._compiler) + len(self._prompts) + len(self._generating)

    def add(self, request: GenerationRequest) -> list[Chunk]:
        """Add a sequence; returns its chunks if it is refused or has ended before."""
        error = request_error(request, self._info)
        if error:
            return [Chunk(request_id=request.id, finish="error", error=error)]
        matcher = None
        if request.constraint is not None:
            if self._loaded.vocabulary is None:
                error = "The tokenizer of this model can't be used for constraints."
                return [Chunk(request_id=request.id, finish="error", error=error)]
            matcher = self._compiler.add(request, request.constraint, self._loaded.vocabulary)
            if matcher is None:
                return []
        return self._begin(request, matcher)

    def _begin(self, request: GenerationRequest, matcher: Matcher | None) -> list[Chunk]:
        limit = min(request.max_tokens, self._info.context_length - len(request.prompt)) - len(request.generated)
        sequence = Sequence(request, limit=limit, detokenizer=self._loaded.new_detokenizer(), matcher=matcher)
        ended = sequence.ended
        if ended is not None:
            return [Chunk(request_id=request.id, started=True), sequence.final(ended)]
        self._prompts.add(sequence)
        return []

    def cancel(self, request_id: str) -> list[Chunk]:
        """End a sequence now and put its state into the prefix cache; returns its final chunk, if it is known."""
        if self._compiler.cancel(request_id):
            return [Chunk(request_id=request_id, finish="cancelled")]
        sequence = self._prompts.remove(request_id)
        if sequence is not None:
            if sequence.cache is not None:
                self._keep(sequence, list(sequence.context[: sequence.done]), sequence.cache)
            return [sequence.final("cancelled")]
        sequence = next((s for s in self._generating.values() if s.request.id == request_id), None)
        if sequence is None:
            return []
        try:
            self._withdraw(sequence)
        except Exception as error:
            self._generating.pop(sequence.uid, None)
            return [sequence.final("cancelled"), *self._recover(error)]
        return [sequence.final("cancelled")]

    def step(self) -> list[Chunk]:
        """Read a slice of prompts and decode one token of every generating sequence."""
        chunks = self._take_compiled()
        with mx.stream(self._generator.stream):
            chunks += self._prompts.start(self._prefix_cache, is_idle=not self._generating)
        chunks += self._read()
        if self._generating:
            try:
                _, responses = self._generator.next()
                top = {uid: sequence.request.top_logprobs for uid, sequence in self._generating.items()}
                scores = iter(score_responses(responses, top))
                for _, own in groupby(responses, key=lambda response: response.uid):
                    # One by one: chunks from before a failure are returned.
                    chunks.append(self._advance([(response, next(scores)) for response in own]))
            except Exception as error:
                chunks += self._recover(error)
        return chunks

    def close(self) -> None:
        self._compiler.close()
        self._masks.close()
        self._generator.close()

    def _take_compiled(self) -> list[Chunk]:
        if len(self._compiler) and not self._prompts and not self._generating:
            self._compiler.wait(seconds=_COMPILING_SECONDS)
        chunks: list[Chunk] = []
        for request, matcher in self._compiler.ready():
            if isinstance(matcher, ModelError):
                chunks.append(Chunk(request_id=request.id, finish="error", error=str(matcher)))
            else:
                chunks += self._begin(request, matcher)
        return chunks

    def _processors(self, sequence: Sequence) -> list[Processor]:
        request, watch = sequence.request, None
        if request.thinking is not None:
            watch = ThinkingWatch(request.thinking, self._spelling.spell)
            for token in request.generated:
                watch.add(token)
        return processors_for(
            request.sampling,
            prompt_length=len(request.prompt),
            matcher=sequence.matcher,
            masks=self._masks,
            watch=watch,
        )

    def _read(self) -> list[Chunk]:
        """Read one slice of prompts."""
        awaits_first_token = any(sequence.chosen == 0 for sequence in self._generating.values())
        group = self._prompts.next_group(is_idle=not self._generating, awaits_first_token=awaits_first_token)
        if not group:
            return []
        return self._read_slice(group[0]) if self._prompts.is_long(group[0]) else self._hand_over(group)

    def _read_slice(self, sequence: Sequence) -> list[Chunk]:
        model = self._loaded.model
        end = min([sequence.done + self._prefill_step, *sequence.cuts[:1]])
        tokens = sequence.context[sequence.done : end]
        try:
            with mx.stream(self._generator.stream):
                if sequence.cache is None:
                    sequence.cache = make_prompt_cache(model)
                model(mx.array(tokens)[None], cache=sequence.cache)
                mx.eval([layer.state for layer in sequence.cache])
                mx.clear_cache()
        except Exception as error:
            self._prompts.remove(sequence.request.id)
            return [sequence.failed(error)]
        sequence.done = end
        if sequence.cuts[:1] == [end]:
            del sequence.cuts[0]
            self._keep(sequence, list(sequence.context[:end]), sequence.cache)
        return []

    def _hand_over(self, group: list[Sequence]) -> list[Chunk]:
        """Give sequences whose remaining context fits in a slice to BatchGenerator."""
        for sequence in group:
            self._prompts.remove(sequence.request.id)
        try:
            processors = [self._processors(sequence) for sequence in group]
            uids = self._generator.insert(
                [list(sequence.context[sequence.done :]) for sequence in group],
                max_tokens=[sequence.limit for sequence in group],
                caches=[sequence.cache for sequence in group],
                all_tokens=[list(sequence.context[: sequence.done]) for sequence in group],
                samplers=[
                    sampler_for(sequence.request.sampling, position=len(sequence.request.generated))
                    for sequence in group
                ],
                logits_processors=processors,
            )
        except Exception as error:
            return [sequence.failed(error) for sequence in group]
        for uid, sequence, own_processors in zip(uids, group, processors, strict=True):
            sequence.uid, sequence.cache = uid, None
            self._generating[uid] = sequence
            if self._speculating is not None:
                sequence.drafter = self._speculating.watch(
                    uid, sequence.context, stop_tokens=self._loaded.stop_tokens, guide=guide_among(own_processors)
                )
        return []

    def _advance(self, responses: list[tuple[Any, Scores | None]]) -> Chunk:
        """Take the tokens of one sequence; there are several when drafted ones were accepted."""
        sequence, last = self._generating[responses[0][0].uid], responses[-1][0]
        output, count = sequence.take(responses, self._spelling)
        # The matcher is one token ahead: it has taken the last one to choose the next.
        matcher = sequence.matcher if count == len(responses) else None
        error = matcher.error if matcher is not None else ""
        is_whole = matcher is not None and matcher.must_end
        finish: Finish | None = last.finish_reason
        if finish is not None:
            del self._generating[sequence.uid]
            self._keep(sequence, last.all_tokens, last.prompt_cache, answered=not error)
        elif sequence.stop.is_complete or is_whole:
            self._withdraw(sequence, answered=not error)
        else:
            return Chunk(request_id=sequence.request.id, **output)
        if matcher is not None and error:
            log.warning("a constraint failed: %s", error)
            finish, error = "error", matcher.sentence
        elif finish is None or is_whole:
            finish = "stop"
        return sequence.final(finish, error=error, **output)

    def _withdraw(self, sequence: Sequence, *, answered: bool = False) -> None:
        """Take a sequence out of the generator and put its state into the prefix cache."""
        with mx.stream(self._generator.stream):
            removed = self._generator.remove([sequence.uid], return_prompt_caches=True)
            if sequence.uid in removed:
                cache, tokens = removed[sequence.uid]
                self._keep(sequence, tokens, cache, answered=answered)
        if self._speculating is not None:
            self._speculating.forget(sequence.uid)
        del self._generating[sequence.uid]

    def _recover(self, error: Exception) -> list[Chunk]:
        """End all sequences of the generator and replace it: after a failed step its state can't be trusted."""
        failed, self._generating = list(self._generating.values()), {}
        self._generator.close()
        self._generator = self._new_generator()
        return [sequence.failed(error) for sequence in failed]

    def _keep(self, sequence: Sequence, tokens: list[int], cache: list[Any], *, answered: bool = False) -> None:
        """Put a state into the prefix cache; on the disk only that of a sequence that has given its answer."""
        if not self._prefix_cache.max_bytes:
            return
        try:
            with mx.stream(self._generator.stream):
                request = sequence.request
                on_disk = answered and request.cache_on_disk
                if self._prefix_cache.insert(
                    request.cache_scope, tokens, cache, key=request.cache_key, on_disk=on_disk
                ):
                    read = min(len(tokens), len(request.prompt))
                    sequence.written = max(0, read - sequence.cached)
        except Exception:  # the cache only saves time
            log.exception("a sequence's state can't be cached")

    def _new_generator(self) -> Any:
        generator = BatchGenerator(
            Float32Logits(self._loaded.model),
            stop_tokens=[[token] for token in self._loaded.stop_tokens],
            completion_batch_size=self._batch_size,
            prefill_batch_size=self._batch_size,
            prefill_step_size=self._prefill_step,
        )
        self._speculating = SpeculatingBatch.attach_to(generator, self._speculation) if self._speculation else None
        return generator

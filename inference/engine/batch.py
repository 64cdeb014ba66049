"""All running sequences of one model, advanced step by step. One thread owns it.

A step decodes one token of every generating sequence and also reads at most `prefill_step` tokens of prompts: no prompt
delays a running stream for longer than that. So long prompts are read alone, one slice per step; short ones together,
as many of similar length as fit in one slice.
"""

import logging
from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any

from inference.constraints.compiler import Compiler
from inference.constraints.masks import Masks
from inference.constraints.matching import Matcher
from inference.decoding.decoder import Decoder
from inference.decoding.prefill import read_slice, read_together
from inference.decoding.row import Choice, Row
from inference.decoding.sampling import Draw
from inference.engine.logits import constraint_among, processors_for
from inference.engine.logprobs import Spelling
from inference.engine.model_loading import LoadedModel
from inference.engine.prompt_queue import PromptQueue
from inference.engine.sequence import Output, Sequence, request_error
from inference.engine.thinking import ThinkingWatch
from inference.prefix_cache.prefix_cache import PrefixCache
from inference.speculation.drafter import Drafter
from inference.speculation.options import SpeculationOptions
from inference.types import Chunk, GenerationRequest, ModelError, ModelInfo

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
        prefill_step: int,
        prefix_cache: PrefixCache,
        speculation: SpeculationOptions | None = None,
    ) -> None:
        self._loaded = loaded
        self._info = info
        self._prefill_step = prefill_step
        self._speculation = speculation
        self._prefix_cache = prefix_cache
        self._spelling = Spelling(loaded.new_detokenizer)
        self._compiler, self._masks = Compiler(), Masks()
        self._prompts = PromptQueue(prefill_step)
        self._generating: dict[Row, Sequence] = {}
        self._decoder = Decoder(loaded.model, speculation=speculation)

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
        assert sequence.row is not None
        try:
            self._decoder.leave([sequence.row])
        except Exception as error:
            del self._generating[sequence.row]
            return [sequence.final("cancelled"), *self._recover(error)]
        self._end(sequence)
        return [sequence.final("cancelled")]

    def step(self) -> list[Chunk]:
        """Read a slice of prompts and decode one token of every generating sequence."""
        chunks = self._take_compiled()
        chunks += self._prompts.start(self._prefix_cache, is_idle=not self._generating)
        chunks += self._read()
        if self._generating:
            try:
                for chunk in self._advance(self._decoder.step()):  # those from before a failure are returned
                    chunks.append(chunk)
            except Exception as error:
                chunks += self._recover(error)
        return chunks

    def close(self) -> None:
        self._compiler.close()
        self._masks.close()
        self._decoder.close()

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

    def _row(self, sequence: Sequence) -> Row:
        """A sequence from here on as the decoder has it."""
        request, watch = sequence.request, None
        if request.thinking is not None:
            watch = ThinkingWatch(request.thinking, self._spelling.spell)
            for token in request.generated:
                watch.add(token)
        processors = processors_for(
            request.sampling,
            prompt_length=len(request.prompt),
            matcher=sequence.matcher,
            masks=self._masks,
            watch=watch,
        )
        sequence.constrained = constraint_among(processors)
        drafter = None
        if self._speculation is not None:
            drafter = Drafter(
                sequence.context,
                stop_tokens=self._loaded.stop_tokens,
                longest=self._speculation.draft_tokens,
                guide=sequence.constrained,
            )
        return Row(
            tokens=list(sequence.context),
            most=sequence.limit,
            draw=Draw.of(request.sampling, first=len(request.generated)),
            processors=processors,
            top_logprobs=request.top_logprobs,
            drafter=drafter,
            state=sequence.cache,
            read=sequence.done,
        )

    def _read(self) -> list[Chunk]:
        """Read one slice of prompts."""
        if not self._prompts:
            return []
        awaits_first_token = any(sequence.awaits_first_token for sequence in self._generating.values())
        group = self._prompts.next_group(is_idle=not self._generating, awaits_first_token=awaits_first_token)
        if not group:
            return []
        return self._read_slice(group[0]) if self._prompts.is_long(group[0]) else self._read_together(group)

    def _read_slice(self, sequence: Sequence) -> list[Chunk]:
        end = min([sequence.done + self._prefill_step, *sequence.cuts[:1]])
        tokens = sequence.context[sequence.done : end]
        try:
            sequence.cache = read_slice(self._loaded.model, tokens, sequence.cache)
        except Exception as error:
            self._prompts.remove(sequence.request.id)
            return [sequence.failed(error)]
        sequence.done = end
        if sequence.cuts[:1] == [end]:
            del sequence.cuts[0]
            self._keep(sequence, list(sequence.context[:end]), sequence.cache)
        return []

    def _read_together(self, group: list[Sequence]) -> list[Chunk]:
        """Read the rest of these sequences, which fits in a slice, and have them decoded."""
        for sequence in group:
            self._prompts.remove(sequence.request.id)
        if not self._decoder.rows:
            return self._begin_to_decode(group)
        chunks = self._begin_to_decode([sequence for sequence in group if sequence.remaining > 1])
        return chunks + self._begin_to_decode([sequence for sequence in group if sequence.remaining == 1])

    def _begin_to_decode(self, group: list[Sequence]) -> list[Chunk]:
        if not group:
            return []
        try:
            rows = [self._row(sequence) for sequence in group]
            state, logits = read_together(self._loaded.model, rows, whole=not self._decoder.rows)
        except Exception as error:
            return [sequence.failed(error) for sequence in group]
        for sequence, row in zip(group, rows, strict=True):
            sequence.row, sequence.cache = row, None
            self._generating[row] = sequence
        try:
            self._decoder.join(rows, state, logits)
        except Exception as error:
            return self._recover(error)
        return []

    def _advance(self, choices: list[Choice]) -> Iterator[Chunk]:
        """Take the tokens of each sequence; there are several when drafted ones were accepted."""
        ended: list[tuple[Sequence, Output]] = []
        for row, own in groupby(choices, key=attrgetter("row")):
            sequence = self._generating[row]
            output = sequence.take(list(own), stop_tokens=self._loaded.stop_tokens, spelling=self._spelling)
            if output.finish is not None:
                ended.append((sequence, output))
            else:
                yield Chunk(
                    request_id=sequence.request.id, text=output.text, tokens=output.tokens, logprobs=output.logprobs
                )
        if ended:
            self._decoder.leave([sequence.row for sequence, _ in ended if sequence.row is not None])
        for sequence, output in ended:
            self._end(sequence, answered=not output.error)
            assert output.finish is not None
            yield sequence.final(output.finish, output=output)

    def _end(self, sequence: Sequence, *, answered: bool = False) -> None:
        """Put the state of a sequence that has left the decoder into the prefix cache."""
        row = sequence.row
        assert row is not None
        assert row.state is not None
        del self._generating[row]
        self._keep(sequence, row.tokens[: row.read], row.state, answered=answered)
        row.state = None

    def _recover(self, error: Exception) -> list[Chunk]:
        """End all sequences that are decoded: after a failed step their state can't be trusted."""
        failed, self._generating = list(self._generating.values()), {}
        self._decoder.close()
        self._decoder = Decoder(self._loaded.model, speculation=self._speculation)
        return [sequence.failed(error) for sequence in failed]

    def _keep(self, sequence: Sequence, tokens: list[int], cache: list[Any], *, answered: bool = False) -> None:
        """Put a state into the prefix cache; on the disk only that of a sequence that has given its answer."""
        if not self._prefix_cache.max_bytes:
            return
        try:
            request = sequence.request
            if self._prefix_cache.insert(
                request.cache_scope,
                tokens,
                cache,
                key=request.cache_key,
                holder=request.cache_holder,
                on_disk=answered and request.cache_on_disk,
            ):
                read = min(len(tokens), len(request.prompt))
                sequence.written = max(0, read - sequence.cached)
        except Exception:  # the cache only saves time
            log.exception("a sequence's state can't be cached")

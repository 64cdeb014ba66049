"""One sequence of a batch: its request, the tokens that it has read and generated, and its end."""

import logging
from collections.abc import Iterable
from typing import Any

from inference.constraints.matching import Matcher
from inference.engine.detokenizer import Detokenizer
from inference.engine.logprobs import Scores, Spelling
from inference.engine.stop_strings import StopStrings
from inference.prefix_cache.disk_cache import Reading
from inference.speculation.drafter import Drafter
from inference.types import Chunk, Finish, GenerationRequest, ModelInfo, TokenLogprob

log = logging.getLogger(__name__)


class Sequence:
    """While its prompt is read, its state is in `cache`; then BatchGenerator has it under `uid`."""

    def __init__(
        self, request: GenerationRequest, *, limit: int, detokenizer: Detokenizer, matcher: Matcher | None = None
    ) -> None:
        """limit: how many tokens may still be generated. The matcher has taken those that were generated before."""
        self.request, self.limit, self.detokenizer, self.matcher = request, limit, detokenizer, matcher
        self.context = request.prompt + request.generated  # read before a token is chosen
        self.stop = StopStrings(request.stop)
        self.sought = False  # its prefix was looked for on the disk
        self.reading: Reading | None = None
        self.started = False
        self.cache: list[Any] | None = None
        self.done = 0  # tokens of the context that are in `cache`
        self.cached = 0  # how many of them came from the prefix cache
        self.written = 0  # prompt tokens that were added to the prefix cache
        self.cuts: list[int] = []  # where its state is put into the prefix cache while its prompt is read
        self.uid = -1
        self.chosen = 0
        self.drafter: Drafter | None = None
        for token in request.generated:
            self.stop.add(detokenizer.add(token))

    @property
    def remaining(self) -> int:
        """How many tokens of the context are still to be read."""
        return len(self.context) - self.done

    def plan_cuts(self, wanted: Iterable[int], *, apart: int) -> None:
        """Stop at these positions to keep the state there, but for those fewer than `apart` tokens after another."""
        last = self.done
        for position in sorted(set(wanted)):
            if max(last, self.done) + max(apart, 1) <= position < len(self.context):
                self.cuts.append(position)
                last = position

    @property
    def ended(self) -> Finish | None:
        """The finish of a resumed answer that had ended before; None for one that can be continued."""
        if not self.request.generated:
            return None
        if self.stop.is_complete or (self.matcher is not None and self.matcher.must_end):
            return "stop"
        return "length" if self.limit < 1 else None

    def take(self, responses: list[tuple[Any, Scores | None]], spelling: Spelling) -> tuple[dict[str, Any], int]:
        """The output of a step's responses up to the end of a stop string, and how many of the responses that are."""
        text, tokens, logprobs, count = "", [], [], 0
        for response, scores in responses:
            count += 1
            self.chosen += 1
            if response.finish_reason != "stop":
                piece = self.detokenizer.add(response.token)
                text += self.stop.add(piece)
                tokens.append(response.token)
                if scores is not None:
                    logprobs.append(spelling.describe(response.token, scores, text=piece))
            if self.stop.is_complete:
                break
        return {"text": text, "tokens": tuple(tokens), "logprobs": tuple(logprobs)}, count

    def final(
        self,
        finish: Finish,
        *,
        text: str = "",
        tokens: tuple[int, ...] = (),
        logprobs: tuple[TokenLogprob, ...] = (),
        error: str = "",
    ) -> Chunk:
        """The final chunk, with the text that was held back."""
        text += self.stop.add(self.detokenizer.flush()) + self.stop.flush()
        if self.stop.is_complete and finish == "length":
            finish = "stop"
        return Chunk(
            request_id=self.request.id,
            text=text,
            tokens=tokens,
            logprobs=logprobs,
            finish=finish,
            error=error,
            cache_write_tokens=self.written,
            drafted_tokens=self.drafter.drafted if self.drafter else 0,
            accepted_tokens=self.drafter.accepted if self.drafter else 0,
        )

    def failed(self, error: Exception) -> Chunk:
        """The final chunk after an error of the model."""
        log.error("a sequence failed: %s", self.request.id, exc_info=error)
        reason = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
        return self.final("error", error=f"The model failed in a step ({reason}).")


def request_error(request: GenerationRequest, info: ModelInfo) -> str:
    """Why the model can't take a request, one sentence; empty if it can."""
    if not request.prompt:
        return "The prompt is empty."
    if len(request.prompt) >= info.context_length:
        return "The prompt fills the model's context."
    if min(request.prompt) < 0 or max(request.prompt) >= info.vocab_size:
        return "The prompt contains a token that the model doesn't know."
    if any(not 0 <= token < info.vocab_size for token in request.generated):
        return "The answer that is to be continued contains a token that the model doesn't know."
    if request.max_tokens < 1:
        return "At least one token must be requested."
    if any(not 0 <= token < info.vocab_size for token, _ in request.sampling.logit_bias):
        return "The logit bias names a token that the model doesn't know."
    if request.top_logprobs is not None and not 0 <= request.top_logprobs <= 20:
        return "`top_logprobs` must be from 0 to 20."
    return ""

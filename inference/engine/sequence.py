"""One sequence of a batch: its request, the tokens that it has read and generated, and its end."""

import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inference.constraints.matching import Matcher
from inference.engine.detokenizer import Detokenizer
from inference.engine.stop_strings import StopStrings
from inference.prefix_cache.disk_cache import Reading
from inference.types import Chunk, Finish, GenerationRequest, ModelInfo, TokenLogprob

if TYPE_CHECKING:
    from inference.decoding.row import Choice, Row
    from inference.engine.logits import Constrained
    from inference.engine.logprobs import Spelling

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Output:
    """What a step has added to an answer."""

    text: str
    tokens: tuple[int, ...] = ()
    logprobs: tuple[TokenLogprob, ...] = ()
    finish: Finish | None = None
    error: str = ""


class Sequence:
    """While its prompt is read, its state is in `cache`; then a decoder has it as `row`."""

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
        self.row: Row | None = None
        self.constrained: Constrained | None = None
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

    @property
    def awaits_first_token(self) -> bool:
        """It is decoded, and no token is chosen yet."""
        return self.row is not None and len(self.row.tokens) == len(self.context)

    def take(self, choices: list["Choice"], *, stop_tokens: Collection[int], spelling: "Spelling") -> Output:
        """The output of a step's choices, up to the end of the answer."""
        if self.matcher is not None and self.matcher.has_failed:
            choices = choices[:-1]  # the last was chosen without a mask
        text, tokens, logprobs = "", [], []
        finish: Finish | None = None
        for _, token, scores in choices:
            if token in stop_tokens:
                finish = "stop"
                break
            piece = self.detokenizer.add(token)
            text += self.stop.add(piece)
            tokens.append(token)
            if scores is not None:
                logprobs.append(spelling.describe(token, scores, text=piece))
            if self.stop.is_complete:
                finish = "stop"
                break
        output = Output(text, tuple(tokens), tuple(logprobs), finish)
        assert self.row is not None
        if finish is None and self.matcher is not None:
            self._follow(output)
        if output.finish is None and len(self.row.tokens) - len(self.context) == self.limit:
            output.finish = "length"
        return output

    def _follow(self, output: Output) -> None:
        """End the answer where its constraint does."""
        assert self.matcher is not None
        assert self.constrained is not None
        assert self.row is not None
        self.constrained.take(self.row.tokens)
        if self.matcher.error:
            log.warning("a constraint failed: %s", self.matcher.error)
            output.finish, output.error = "error", self.matcher.sentence
        elif self.matcher.must_end:
            output.finish = "stop"

    def final(self, finish: Finish, *, output: Output | None = None, error: str = "") -> Chunk:
        """The final chunk, with the text that was held back."""
        output = output or Output("")
        text = output.text + self.stop.add(self.detokenizer.flush()) + self.stop.flush()
        if self.stop.is_complete and finish == "length":
            finish = "stop"
        drafter = self.row.drafter if self.row is not None else None
        return Chunk(
            request_id=self.request.id,
            text=text,
            tokens=output.tokens,
            logprobs=output.logprobs,
            finish=finish,
            error=error or output.error,
            cache_write_tokens=self.written,
            drafted_tokens=drafter.drafted if drafter else 0,
            accepted_tokens=drafter.accepted if drafter else 0,
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

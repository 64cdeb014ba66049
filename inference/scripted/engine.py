"""A deterministic engine without a model, with the interface and the threading of the real one. Standard library only.

The answer follows from the prompt alone (see `inference.scripted.script` for the directives,
`inference.scripted.tokenizer` for the tokens). One thread steps all running sequences together, one token per sequence
and step, `token_seconds` apart.
"""

import codecs
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial

from inference.engine.memory_gate import NO_MEMORY, MemoryGate, Stopped
from inference.engine.scheduler import Scheduler
from inference.engine.stop_strings import StopStrings
from inference.memory import ModelMemory
from inference.scripted.script import Fail, Script, read_script
from inference.scripted.thinking import limited
from inference.scripted.tokenizer import VOCAB_SIZE, token_bytes
from inference.types import (
    STOPPED,
    Chunk,
    Constraint,
    EngineLoad,
    Finish,
    GenerationRequest,
    ModelError,
    ModelInfo,
    Progress,
    Sink,
    TokenLogprob,
)

log = logging.getLogger(__name__)

_DIVERGED = "The answer that is to be continued is not what the script says."


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedOptions:
    """batch_size: slots; token_seconds: duration of a step, 0 for as fast as possible; context_length: in tokens;
    load_seconds: how long it takes to start; most_tokens: shortens the context to what there is memory for.
    """

    batch_size: int = 32
    token_seconds: float = 0.0
    context_length: int = 131_072
    load_seconds: float = 0.0
    most_tokens: int | None = None


class _Sequence:
    """One running sequence."""

    def __init__(
        self,
        request: GenerationRequest,
        script: Script,
        *,
        limit: int,
        now: float,
        sleep: Callable[[float], object],
    ) -> None:
        self.id = request.id
        self._hang = partial(sleep, script.hang) if script.hang else lambda: None
        self.steps = script.steps()
        if request.thinking is not None:
            self.steps = limited(self.steps, request.thinking, token_bytes)
        if request.constraint is not None:
            self.steps = _following(self.steps, request.constraint)
        self.slow = script.slow
        self.position = len(request.generated)
        self.left = max(0, limit - self.position)
        self.top_logprobs = request.top_logprobs
        self.due = now if request.generated else now + script.wait
        self.text = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.stop = StopStrings(request.stop)
        self._skip(request.generated)

    def _skip(self, generated: tuple[int, ...]) -> None:
        """Advance to the state after these tokens; a script that doesn't begin with them fails."""
        for token in generated:
            step = next(self.steps, None)
            if step != token:
                self.steps = iter([step if isinstance(step, Fail) else Fail(_DIVERGED)])
                return
            self.stop.add(self.text.decode(token_bytes(token)))

    @property
    def ended(self) -> Finish | None:
        return "stop" if self.stop.is_complete else None if self.left else "length"

    def step(self, now: float) -> Chunk:
        self.due = now + self.slow
        finish = self.ended
        if finish is not None:  # a resumed answer that had ended before
            return self.end(finish)
        step = next(self.steps, None)
        if step is None:
            self._hang()
            return self.end("stop")
        if isinstance(step, Fail):
            return self.end("error", error=step.error)
        self.left -= 1
        logprobs = () if self.top_logprobs is None else (_logprob(self.position, step, self.top_logprobs),)
        self.position += 1
        text = self.stop.add(self.text.decode(token_bytes(step)))
        finish = self.ended
        if finish is None:
            return Chunk(request_id=self.id, text=text, tokens=(step,), logprobs=logprobs)
        return self.end(finish, text=text, tokens=(step,), logprobs=logprobs)

    def end(
        self,
        finish: Finish,
        *,
        text: str = "",
        tokens: tuple[int, ...] = (),
        logprobs: tuple[TokenLogprob, ...] = (),
        error: str = "",
    ) -> Chunk:
        """The final chunk, with the text that was held back as a possible stop string."""
        text += self.stop.flush()
        return Chunk(request_id=self.id, text=text, tokens=tokens, logprobs=logprobs, finish=finish, error=error)


def _logprob(position: int, token: int, count: int) -> TokenLogprob:
    """Invented from the token and its position: -0.125 to -0.5, followed by letters, each less likely."""
    spelt, logprob = token_bytes(token), -0.125 * (1 + position % 4)
    letters = [bytes((byte,)) for byte in b"abcdefghijklmnopqrstu" if bytes((byte,)) != spelt]
    others = ((letter, logprob - 3.0 - 0.5 * rank) for rank, letter in enumerate(letters))
    return TokenLogprob(token=spelt, logprob=logprob, top=((spelt, logprob), *others)[:count])


def _following(steps: Iterator[int | Fail], constraint: Constraint) -> Iterator[int | Fail]:
    """The script as the constraint allows it. Only this function needs llguidance."""
    from inference.constraints.matching import byte_vocabulary
    from inference.scripted.constraint import constrained

    try:
        matcher = byte_vocabulary().matcher(constraint)
    except ModelError as error:
        return iter([Fail(str(error))])
    return constrained(steps, matcher)


class ScriptedEngine:
    """An Engine. It honours `stop`, `constraint`, `thinking` and `top_logprobs`; nothing is sampled.

    There is no prefix cache: `cached_tokens` is always 0. Its memory is that of its footprint, of which it takes none.
    """

    def __init__(
        self,
        *,
        sink: Sink,
        name: str = "scripted",
        options: ScriptedOptions | None = None,
        memory: ModelMemory | None = None,
    ) -> None:
        self.options = options or ScriptedOptions()
        self._memory = memory or ModelMemory()
        self._gate = MemoryGate(self._memory, self._memory.footprint.state)
        self.info = ModelInfo(
            name=name, digest="scripted-1", context_length=self.options.context_length, vocab_size=VOCAB_SIZE
        ).limited_to(self.options.most_tokens)
        self._sink = sink
        self._scheduler = Scheduler(self.options.batch_size)
        self._thread: threading.Thread | None = None
        self._sequences: dict[str, _Sequence] = {}
        self._closing = threading.Event()

    def start(self, *, progress: Progress | None = None) -> None:
        if self._thread is not None:
            raise RuntimeError("an engine starts once")
        if self._closing.wait(self.options.load_seconds):
            raise ModelError("The engine was closed while it was started.")
        self._memory.account.set_weights(self._memory.footprint.weights + self._memory.footprint.step)
        self._memory.account.budget.listen(self._scheduler.wake)
        self._scheduler.open()
        self._thread = threading.Thread(target=self._run, name=f"engine-{self.info.name}", daemon=True)
        self._thread.start()
        if progress:
            progress("Loading the model", 1.0)

    @property
    def is_running(self) -> bool:
        return self._scheduler.is_open

    def submit(self, request: GenerationRequest) -> None:
        self._scheduler.submit(request)

    def cancel(self, request_id: str) -> None:
        self._scheduler.cancel(request_id)

    def forget(self, scope: str) -> None:
        """There is no prefix cache."""

    def retain(self, scopes: Collection[str]) -> None:
        """There is no prefix cache."""

    def holders(self) -> Collection[str]:
        return ()

    def release(self, holders: Collection[str]) -> None:
        """There is no prefix cache."""

    def load(self) -> EngineLoad:
        return self._scheduler.load()

    def close(self) -> None:
        self._closing.set()
        self._scheduler.close()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            self._loop()
        except Exception:  # every live sequence still gets its last chunk
            log.exception("the scripted engine stopped")
            self._scheduler.close()
            live = self._scheduler.drain()
            if live:
                log.error("the engine of %s stopped, and with it the requests %s", self.info.name, ", ".join(live))
            self._emit([Chunk(request_id=id, finish="error", error=STOPPED) for id in live])
        else:
            self._emit([Chunk(request_id=id, finish="cancelled") for id in self._scheduler.drain()])
        self._memory.account.budget.unlisten(self._scheduler.wake)
        self._memory.account.close()

    def _loop(self) -> None:
        next_step = time.monotonic()
        while self._scheduler.is_open:
            self._scheduler.begin_step()
            chunks = self._cancel() + self._admit(next_step)
            now = time.monotonic()
            if now >= next_step:
                stepped = [sequence.step(now) for sequence in self._sequences.values() if sequence.due <= now]
                chunks += [self._note(chunk) for chunk in stepped]
                if stepped:
                    next_step = now + self.options.token_seconds
            self._scheduler.end_step()
            chunks = self._gate.note(chunks)
            for stopped in self._gate.outgrown():
                chunks += self._gate.note(self._stop(stopped))
            self._emit(chunks)
            if self._gate.lacks_memory and not self._scheduler.load().waiting:
                self._gate.nothing_waits()
            self._scheduler.wait(self._pause(next_step))

    def _pause(self, next_step: float) -> float | None:
        """Seconds until a sequence can step; None if there is no sequence."""
        load = self._scheduler.load()
        if load.waiting and load.running < load.slots and not self._gate.lacks_memory:
            return 0.0  # a slot became free in this very step
        if not self._sequences:
            return None
        earliest = max(next_step, min(sequence.due for sequence in self._sequences.values()))
        return max(0.0, earliest - time.monotonic())

    def _cancel(self) -> list[Chunk]:
        waiting, running = self._scheduler.take_cancelled()
        chunks = [Chunk(request_id=id, finish="cancelled") for id in waiting]
        chunks += [self._sequences[id].end("cancelled") for id in running]
        return [self._note(chunk) for chunk in chunks]

    def _stop(self, stopped: Stopped) -> list[Chunk]:
        """End a sequence that there is no memory for, or have it wait, of which nobody hears."""
        request = stopped.request
        if stopped.is_over:
            return [self._note(self._sequences[request.id].end("length"))]
        del self._sequences[request.id]
        self._scheduler.put_back(request)
        return []

    def _admit(self, next_step: float) -> list[Chunk]:
        chunks: list[Chunk] = []
        # A request that arrives during a step joins the next one, and has its token at the end of that.
        first_step_ends = max(time.monotonic(), next_step) + self.options.token_seconds
        for request in self._scheduler.admit(fits=self._gate.admits):
            if request.id not in self._gate:
                chunks.append(self._note(Chunk(request_id=request.id, finish="error", error=NO_MEMORY)))
                continue
            room = self.info.context_length - len(request.prompt)
            if not request.prompt or room < 1:
                error = "The prompt is empty." if not request.prompt else "The prompt fills the model's context."
                chunks.append(self._note(Chunk(request_id=request.id, finish="error", error=error)))
                continue
            limit = max(1, min(request.max_tokens, room))
            self._sequences[request.id] = _Sequence(
                request, read_script(request.prompt), limit=limit, now=first_step_ends, sleep=self._closing.wait
            )
            chunks.append(Chunk(request_id=request.id, started=True))
        return chunks

    def _note(self, chunk: Chunk) -> Chunk:
        if chunk.finish:
            self._sequences.pop(chunk.request_id, None)
            self._scheduler.release(chunk.request_id)
        return chunk

    def _emit(self, chunks: list[Chunk]) -> None:
        if not chunks:
            return
        try:
            self._sink(chunks)
        except Exception:  # an error of the caller does not end the engine
            log.exception("the engine's sink raised; its chunks are lost")

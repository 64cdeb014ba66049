"""A sink that records the chunks of each sequence, and a client of an engine that uses it."""

import itertools
import threading

from inference.types import ChatTokenizer, Chunk, Engine, GenerationRequest, Sampling

_numbers = itertools.count()


class Recorder:
    """A sink that records its chunks."""

    def __init__(self) -> None:
        self.chunks: dict[str, list[Chunk]] = {}
        self.steps: list[list[Chunk]] = []
        self._changed = threading.Condition()

    def __call__(self, chunks: list[Chunk]) -> None:
        with self._changed:
            self.steps.append(chunks)
            for chunk in chunks:
                self.chunks.setdefault(chunk.request_id, []).append(chunk)
            self._changed.notify_all()

    def wait(self, request_id: str, *, tokens: int | None = None) -> list[Chunk]:
        """The sequence's chunks once it has ended, or has emitted this many tokens."""

        def reached() -> bool:
            chunks = self.chunks.get(request_id, [])
            ended = bool(chunks) and chunks[-1].finish is not None
            return ended or (tokens is not None and sum(len(chunk.tokens) for chunk in chunks) >= tokens)

        with self._changed:
            assert self._changed.wait_for(reached, timeout=100), f"{request_id} did not get there"
            return list(self.chunks[request_id])

    def text(self, request_id: str) -> str:
        return "".join(chunk.text for chunk in self.wait(request_id))

    def tokens(self, request_id: str) -> list[int]:
        return [token for chunk in self.wait(request_id) for token in chunk.tokens]

    def last(self, request_id: str) -> Chunk:
        return self.wait(request_id)[-1]


class Client:
    """An engine with its tokenizer and its recorder."""

    def __init__(self, engine: Engine, tokenizer: ChatTokenizer, recorder: Recorder) -> None:
        self.engine, self.tokenizer, self.recorder = engine, tokenizer, recorder

    def submit(
        self,
        *texts: str,
        max_tokens: int = 1000,
        priority: int = 0,
        scope: str | None = None,
        sampling: Sampling | None = None,
        stop: tuple[str, ...] = (),
    ) -> str:
        """Submit a conversation that starts with the user and alternates. Returns the request's id.

        Without a scope the request gets its own, so that no test reads another's prefixes.
        """
        roles = itertools.cycle(("user", "assistant"))
        messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]
        request_id = f"r{next(_numbers)}"
        self.engine.submit(
            GenerationRequest(
                id=request_id,
                prompt=self.tokenizer.render(messages),
                max_tokens=max_tokens,
                sampling=sampling or Sampling(temperature=0.0),
                stop=stop,
                cache_scope=request_id if scope is None else scope,
                priority=priority,
            )
        )
        return request_id

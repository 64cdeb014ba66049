"""The interface of outputs, which take the events of a run: live for foreground responses, logged for jobs."""

from collections.abc import Sequence
from typing import Protocol

from inference.types import Chunk, Finish
from responses_api.errors import ApiError
from responses_api.streaming import Answer, Event

from .prepare_generation import Continuation, Prepared
from .published_events import PublishedEvents


class Output(Protocol):
    """Methods are called by one thread at a time, in the order `start`, `open`, `feed`…, `close`; `refuse` ends it at
    any point before `open`.
    """

    @property
    def published(self) -> PublishedEvents | None:
        """The events that a reader may ask for again; ``None`` for a job, whose readers read the log."""
        ...

    def start(self, digest: str) -> Continuation | None:
        """The run has begun on a model with this digest. Returns what it resumes from, if there is anything."""
        ...

    def open(self, answer: Answer, prepared: Prepared, events: Sequence[Event]) -> None:
        """The request is accepted: these events begin the stream."""
        ...

    def wait(self, what_for: str) -> None:
        """The engine can't begin yet."""
        ...

    def feed(self, chunks: Sequence[Chunk]) -> None:
        """Feed the answer with the engine's new chunks."""
        ...

    def close(self, finish: Finish, error: str) -> None:
        """Store the end, then publish it. Without the lease, nothing is written or published."""
        ...

    def refuse(self, error: ApiError) -> None:
        """The request can't be run."""
        ...

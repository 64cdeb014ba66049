"""Turns of a conversation without a server: calls the services in the order in which a request does."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from django.db import connection

from inference.scripted.tokenizer import VOCAB_SIZE, ScriptedTokenizer
from inference.types import ModelInfo
from responses_api.caller import Caller
from responses_api.ids import new_id
from responses_api.models import Item, Process, Project, Response, Turn, TurnItem, UsageRecord
from responses_api.selectors import history
from responses_api.selectors.history import history_payloads
from responses_api.selectors.models import forget_live_workers, get_live_workers
from responses_api.services.accounts.authenticate import default_project
from responses_api.services.admission.create_response import create_response, new_response_id
from responses_api.services.jobs.finish_response import Ending, finish_response
from responses_api.services.jobs.leases import Lease, claim_responses
from responses_api.services.processes.announce_process import Announcement, announce_process
from responses_api.worker.generation.prepare_generation import Prepared, prepare_generation
from tests.factories import MODEL, make_announcement

INFO = ModelInfo(name=MODEL, digest="test", context_length=1 << 30, vocab_size=VOCAB_SIZE)


@dataclass
class Queries:
    """Statements and database time of a block."""

    seconds: float = 0.0
    statements: list[str] = field(default_factory=list)


@contextmanager
def timed_queries() -> Iterator[Queries]:
    """Counts every statement of the block, and times its execution and the fetching of histories."""
    queries = Queries()

    def timed_read(turn_id: int | None) -> list[str]:
        # SQLite works while rows are fetched, so a history's whole reading counts.
        before = queries.seconds
        started = time.perf_counter()
        try:
            return history_payloads(turn_id)
        finally:
            queries.seconds = before + time.perf_counter() - started

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        started = time.perf_counter()
        try:
            return execute(sql, params, many, context)
        finally:
            queries.seconds += time.perf_counter() - started
            queries.statements.append(sql)

    with connection.execute_wrapper(watch), patch.object(history, "history_payloads", timed_read):
        yield queries


def row_counts() -> dict[str, int]:
    """Rows of each table that a turn may add to."""
    return {kind.__name__: kind._default_manager.count() for kind in (Response, Turn, TurnItem, Item, UsageRecord)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiUser:
    """A caller with a worker that answers at once."""

    caller: Caller
    worker: str

    @classmethod
    def make(cls, project: Project | None = None) -> "ApiUser":
        user = cls(caller=Caller(project=project or default_project()), worker=new_id("worker_"))
        user.announce()
        return user

    def announce(self) -> None:
        """Announce the worker, and have it seen as live."""
        announcement = make_announcement(
            MODEL, aliases=["smollm2-135m"], digest="test", context_length=INFO.context_length
        )
        announce_process(Announcement(id=self.worker, kind=Process.Kind.WORKER, slots=8, models=[announcement]))
        forget_live_workers()
        get_live_workers()

    def turn(self, text: str, *, previous: str | None = None, **options: Any) -> str:
        """Ask ``text`` and have it answered with "ok". Returns the response's id."""
        return self.begin(text, previous_response_id=previous, **options).end()

    def begin(self, text: str | list[dict[str, Any]], **options: Any) -> "RunningTurn":
        """Ask ``text`` and have a worker take it."""
        payload = {"input": text, **options}
        public_id = new_response_id()
        create_response(caller=self.caller, public_id=public_id, payload=payload, reader="test")
        (row,) = claim_responses(worker=self.worker, models=[MODEL], limit=1)
        prepared = prepare_generation(
            row=row, request_id=public_id, tokenizer=ScriptedTokenizer(), info=INFO, cache_scope="test"
        )
        assert isinstance(prepared, Prepared)
        return RunningTurn(row=row, prepared=prepared)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTurn:
    """A response that a worker is generating."""

    row: Response
    prepared: Prepared

    def end(self, text: str = "ok", *, status: str = "completed", item: dict[str, Any] | None = None) -> str:
        """End the response with this text or item. Returns its id."""
        output = item or {
            "id": new_id("msg_"), "type": "message", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}],
        }  # fmt: skip
        response: Any = {**self.prepared.body, "status": status, "output": [output]}
        ending = Ending(
            response=response,
            input_items=self.prepared.input_items,
            input_tokens=self.prepared.prompt_tokens,
            output_tokens=1,
        )
        row = self.row
        lease = Lease(response=row.pk, public_id=row.public_id, worker=row.worker, attempt=row.attempt)
        assert finish_response(lease=lease, ending=ending)
        return row.public_id

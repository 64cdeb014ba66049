"""`POST /responses`, as a stream or not: subscribe, admit, follow, and cancel when the client leaves."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import structlog
from django.db import Error as DatabaseError

from responses_api.caller import Caller
from responses_api.database.threads import in_admission_thread, in_database_thread
from responses_api.models import Response
from responses_api.services.admission.create_response import create_response, new_response_id
from responses_api.services.jobs.cancel_response import abandon_response

from .follow_response import Follower, follow
from .request_body import RequestBody
from .web_process import web_process

log = structlog.get_logger(__name__)


class Create(Protocol):
    """A service that admits a request. Runs on an admission thread; raises an :class:`ApiError`."""

    def __call__(self, *, caller: Caller, payload: Any, public_id: str, reader: str) -> Response: ...


@asynccontextmanager
async def running_response(create: Create, *, caller: Caller, body: RequestBody) -> AsyncIterator[Follower]:
    """Subscribe, admit the request, and follow its response. Leaving the block before its end cancels the job.

    The response also ends when the key of the request is revoked or expires.
    """
    web_process.refuse_when_stopping()
    public_id = new_response_id()
    follower = await follow(public_id)
    follower.key_id = caller.key_id

    def admit() -> None:
        create(caller=caller, payload=body.value(), public_id=public_id, reader=web_process.id)
        body.forget()

    admitting = asyncio.ensure_future(in_admission_thread(caller.name, admit))
    try:
        await asyncio.shield(admitting)
        # Only once the row is written: a job without a row counts as ended.
        web_process.add(follower)
        yield follower
    finally:
        # A separate task, since the task that leaves this block may be cancelled again while it cleans up.
        cleaning = asyncio.ensure_future(_leave(follower, admitting))
        _leaving.add(cleaning)
        cleaning.add_done_callback(_leaving.discard)


def create_job(*, caller: Caller, body: RequestBody, public_id: str) -> Response:
    """Admit a background job, which runs with or without a reader."""
    web_process.refuse_when_stopping()
    row = create_response(caller=caller, payload=body.value(), public_id=public_id)
    body.forget()
    return row


_leaving: set["asyncio.Future[None]"] = set()


async def readers_gone(timeout: float) -> None:
    """Wait until the readers that have left have cleaned up."""
    if _leaving:
        await asyncio.wait(tuple(_leaving), timeout=timeout)


async def _leave(follower: Follower, admitting: "asyncio.Future[None]") -> None:
    follower.close()
    # A reader that left while its row was being written: wait for the row, so that it can be removed.
    await asyncio.wait((admitting,))
    admitted = not admitting.cancelled() and admitting.exception() is None
    if admitted and not follower.ended:
        try:
            await in_database_thread(abandon_response, public_id=follower.public_id)
        except DatabaseError as error:
            log.warning("reader.abandon_failed", response=follower.public_id, error=str(error))

"""A worker process at work: claims rows, feeds engines, pumps their chunks, keeps its leases."""

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import structlog
from django.conf import settings
from django.db import Error as DatabaseError

from inference.types import Chunk, Finish, GenerationRequest, ModelError
from responses_api import bus
from responses_api.bus.messages import (
    CancelRow,
    CountTokens,
    ForgetScopes,
    RememberThoughts,
    ResendEvents,
    StopCounting,
)
from responses_api.caller import cache_scope
from responses_api.database.threads import with_fresh_connection
from responses_api.errors import ApiError, Overloaded, ServerError
from responses_api.ids import new_id
from responses_api.interruptions import Interrupted
from responses_api.models import Response
from responses_api.selectors.history import history_size
from responses_api.services.jobs.end_job import tell_readers
from responses_api.services.jobs.event_log import LogCursor
from responses_api.services.jobs.leases import Lease, claim_responses
from responses_api.services.processes.announce_process import forget_process
from responses_api.services.prompts.reasoning_echo import reasoning_echo
from responses_api.streaming import EncodedEvent
from responses_api.worker.generation.prepare_generation import Compacting, prepare_generation
from responses_api.worker.generation.run_generation import Generation
from responses_api.worker.generation.run_job import NOT_CONTINUED, CannotContinue, JobGeneration

from .counting import HEAVY_BYTES, Counter
from .ended_streams import EndedStreams
from .hosted_models import ModelHost
from .house import House
from .log_writer import JobLog, LogWriter

log = structlog.get_logger(__name__)

CLAIM_BATCH = 8
SHUTDOWN_SECONDS = 10
CHUNK_LISTS = 1000
NOT_LOADED = "The model can't be loaded at the moment. Try again later, or ask for another model."


def is_heavy(row: Response) -> bool:
    """Whether preparing a row takes long, by what there is to render."""
    if len(row.request) > HEAVY_BYTES or row.parent_id is None:
        return len(row.request) > HEAVY_BYTES
    try:
        return len(row.request) + with_fresh_connection(history_size, row.parent_id) > HEAVY_BYTES
    except DatabaseError:  # whoever prepares it will meet the same, and knows what to do
        return True


class GenerationWorker:
    """One a process. ``wake`` may be called from any number of threads."""

    def __init__(self) -> None:
        self.id = new_id("worker_")
        self._lock = threading.Lock()
        self._runs: dict[int, Generation] = {}
        self._by_request: dict[str, Generation] = {}
        self.ended = EndedStreams(seconds=settings.RESPONSES_LEASE_SECONDS)
        # Bounded: an engine that is quicker than what becomes of its chunks waits.
        self._chunks: queue.Queue[list[Chunk] | None] = queue.Queue(CHUNK_LISTS)
        self._no_more_chunks = False
        # Threads of our own, since Celery closes the database connection around every task.
        self._claimers = ThreadPoolExecutor(max_workers=4, thread_name_prefix="claim")
        self._claim_pending = False
        # Loading takes seconds, which the requests for other models need not wait.
        self._loaders = ThreadPoolExecutor(max_workers=1, thread_name_prefix="load")
        # Rendering takes as long as its text is long: what is small need not wait for what is large, nor any claim.
        self._preparers = ThreadPoolExecutor(max_workers=2, thread_name_prefix="prepare")
        self._compactors = ThreadPoolExecutor(max_workers=2, thread_name_prefix="compact")
        self._finishers = ThreadPoolExecutor(max_workers=4, thread_name_prefix="finish")
        self._log_writer = LogWriter(told=self._tell, lost=self._lose)
        self._jobs_wait = True
        self._job_claims = threading.Lock()
        self._stopping = threading.Event()
        """Nothing more is claimed."""
        self._threads: list[threading.Thread] = []
        self._listener_loop: asyncio.AbstractEventLoop | None = None

    # Life

    def sink(self, chunks: list[Chunk]) -> None:
        """What engines are given as their sink."""
        self._chunks.put(chunks)

    def start(self, host: ModelHost) -> None:
        """Announce the models and begin to look for work. The model that must be ready has been loaded before."""
        self._host = host
        self._counter = Counter(host)
        self._log_writer.start()
        self._spawn(self._pump, "pump")
        self._spawn(self._listen, "listener")
        self._house = House(self, host)
        self._house.open()
        self.wake()

    def drain(self) -> None:
        """Take no more work. Background jobs are handed over; foreground responses have a while to end by themselves,
        and are then ended, so that their readers get a last event. Returns when all has ended.
        """
        self._stopping.set()
        self._house.stop_chores()
        for run in self.live():
            if run.is_job:
                self.cancel(run, "shutdown")
        self._wait_until_idle(settings.RESPONSES_GRACE_SECONDS)
        for run in self.live():
            self.cancel(run, "shutdown")
        self._wait_until_idle(SHUTDOWN_SECONDS)

    def _wait_until_idle(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self.live() and time.monotonic() < deadline:
            time.sleep(0.02)

    def stop(self) -> None:
        """Drain, then close the engines and end the threads."""
        self.drain()
        self._house.close(SHUTDOWN_SECONDS)
        self._host.close()
        self._chunks.put(None)
        if self._listener_loop is not None:
            self._listener_loop.call_soon_threadsafe(self._listener_loop.stop)
        for thread in self._threads:
            thread.join(SHUTDOWN_SECONDS)
        self._claimers.shutdown(wait=True)
        self._loaders.shutdown(wait=True)
        self._preparers.shutdown(wait=True)
        self._compactors.shutdown(wait=True)
        self._counter.stop()
        # Before those who wait for it: with the database away it gives up only when it is to stop.
        self._log_writer.stop(SHUTDOWN_SECONDS)
        self._finishers.shutdown(wait=True)
        with suppress(DatabaseError):
            with_fresh_connection(forget_process, self.id)

    def _spawn(self, target: object, name: str) -> None:
        thread = threading.Thread(target=target, name=f"worker-{name}", daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def live(self) -> list[Generation]:
        """What this worker holds now."""
        with self._lock:
            return list(self._runs.values())

    # Claim

    def wake(self, *, background: bool = False) -> None:
        """Have what waits claimed and begun. Returns at once; a claim that has not begun yet serves this call too.

        Background jobs are looked for only when there may be some, for every request waits for the look.
        """
        with self._lock:
            self._jobs_wait = self._jobs_wait or background
            if self._claim_pending or self._stopping.is_set():
                return
            self._claim_pending = True
        self._claimers.submit(self._claim)

    def _claim(self) -> None:
        with self._lock:
            self._claim_pending = False
        try:
            self._claim_waiting()
        except DatabaseError as error:
            log.warning("worker.claim_failed", error=str(error))
        except Exception:  # a thread of the pool: nobody else would hear of it
            log.exception("worker.claim_failed")

    def _claim_waiting(self) -> None:
        """Claim and begin: interactive requests as far as there is room, then background jobs for free slots."""
        while not self._stopping.is_set():
            limit = min(CLAIM_BATCH, self._room())
            if limit < 1 or self._claim_some(self._host.names, limit) < limit:
                break
        with self._lock:
            jobs_wait, self._jobs_wait = self._jobs_wait, False
        if not jobs_wait:
            return
        for name in self._host.names:
            while not self._stopping.is_set() and self._claim_jobs(name):
                pass

    def _claim_some(self, models: list[str], limit: int) -> int:
        """Claim and begin up to ``limit`` interactive requests; returns how many there were."""
        claimed = self._claim_rows(models, limit)
        self._begin_all(claimed)
        return len(claimed)

    def _claim_jobs(self, model: str) -> bool:
        """Claim and begin jobs of a model for slots that are free; says whether there may be more of both."""
        # One at a time: two would find the same slots free.
        with self._job_claims:
            limit = min(CLAIM_BATCH, self._free_slots(model))
            if limit < 1:
                # Some may wait for the next slot that is free.
                self._jobs_wait = True
                return False
            claimed = self._claim_rows([model], limit, background=True)
        self._begin_all(claimed)
        return len(claimed) == limit

    def _claim_rows(
        self, models: list[str], limit: int, *, background: bool = False
    ) -> list[tuple[Response, Generation]]:
        rows = with_fresh_connection(claim_responses, worker=self.id, models=models, limit=limit, background=background)
        # All are known before the first begins, which may take as long as a model takes to load.
        return [(row, self._take(row)) for row in rows]

    def _begin_all(self, claimed: list[tuple[Response, Generation]]) -> None:
        for row, run in claimed:
            if not self._host.is_running(row.model):
                self._loaders.submit(self._try_to_begin, row, run)
            elif is_heavy(row):
                self._preparers.submit(self._try_to_begin, row, run)
            else:
                self._try_to_begin(row, run)

    def _room(self) -> int:
        with self._lock:
            held = len(self._runs)
        return settings.RESPONSES_BATCH_SIZE * len(self._host.names) + settings.RESPONSES_CLAIM_AHEAD - held

    def _free_slots(self, model: str) -> int:
        """How many more sequences of a model could run now: jobs are not claimed ahead, others might have them."""
        with self._lock:
            held = sum(run.model == model for run in self._runs.values())
        return settings.RESPONSES_BATCH_SIZE - held

    def _take(self, row: Response) -> Generation:
        lease = Lease(response=row.pk, public_id=row.public_id, worker=self.id, attempt=row.attempt)
        run: Generation
        if row.background:
            run = JobGeneration(row=row, lease=lease, log=JobLog(lease, LogCursor(), self._log_writer))
        else:
            run = Generation(row=row, lease=lease)
        with self._lock:
            before = self._runs.get(row.pk)
            self._runs[row.pk] = run
            if self._stopping.is_set():
                # The claim was under way when this worker was told to stop, and knew nothing of it.
                run.stop_reason = run.stop_reason or "shutdown"
        if before is not None:
            # This worker lost the job and has got it again.
            self.cancel(before, "lost")
        return run

    def _try_to_begin(self, row: Response, run: Generation) -> None:
        try:
            with_fresh_connection(self._begin, row, run)
        except Exception:  # whatever it was, the others must begin
            log.exception("worker.begin_failed", response=row.public_id)
            self._forget(run)

    def _begin(self, row: Response, run: Generation) -> None:
        def check() -> None:
            if run.is_to_stop():
                raise Interrupted

        def prepared() -> GenerationRequest | Compacting | None:
            check()  # no model need be loaded for that
            model = self._host[row.model]
            model.ensure_running()
            continuation = run.start(model.engine.info.digest) if isinstance(run, JobGeneration) else None
            check()
            ready = prepare_generation(
                row=row,
                request_id=run.request_id,
                tokenizer=model.tokenizer,
                info=model.engine.info,
                cache_scope=cache_scope(project_id=row.project_id, key_id=row.key_id),
                continuation=continuation,
                check=check,
            )
            return ready if isinstance(ready, Compacting) else run.begin(ready)

        self._go_on(run, prepared)

    def _go_on(self, run: Generation, step: Callable[[], GenerationRequest | Compacting | None]) -> None:
        """Generate what the next step asks for; a step that fails refuses the request. Compacting takes many long
        steps, on threads of their own.
        """
        try:
            request = step()
        except ApiError as error:
            self._refuse(run, error)
        except Interrupted:
            self._refuse(run, run.interruption())
        except CannotContinue:
            log.error("worker.job_not_continued", response=run.lease.public_id)
            self._refuse(run, ServerError(NOT_CONTINUED))
        except ModelError as error:
            # The reason may have paths and more of this machine's.
            log.error("worker.model_not_loaded", model=run.model, response=run.lease.public_id, error=str(error))
            self._refuse(run, Overloaded(NOT_LOADED))
        except DatabaseError as error:
            log.warning("worker.prepare_failed", response=run.lease.public_id, error=str(error))
            self._refuse(run, Overloaded("The server's database can't be reached at the moment. Try again."))
        except Exception:  # the client is told, whatever it was
            log.exception("worker.prepare_failed", response=run.lease.public_id)
            self._refuse(run, ServerError("The server failed to prepare this request."))
        else:
            if isinstance(request, Compacting):
                self._compact(run, partial(run.begin, request))
            else:
                self._generate(run, request)

    def _compact(self, run: Generation, step: Callable[[], GenerationRequest | None]) -> None:
        self._compactors.submit(self._try_to_compact, run, step)

    def _try_to_compact(self, run: Generation, step: Callable[[], GenerationRequest | None]) -> None:
        try:
            with_fresh_connection(self._go_on, run, step)
        except Exception:  # its future is not read, and its slot must be free
            log.exception("worker.compaction_failed", response=run.lease.public_id)
            self._forget(run)

    def _generate(self, run: Generation, request: GenerationRequest | None) -> None:
        engine = self._host[run.model].engine
        with self._lock:
            self._by_request[run.sequence_id] = run
        if request is None or run.is_to_stop():
            finish: Finish = "cancelled" if run.is_to_stop() else "stop"
            self._chunks.put([Chunk(request_id=run.sequence_id, finish=finish)])
            return
        load = engine.load()
        try:
            engine.submit(request)
        except ModelError as error:
            log.error("worker.engine_gone", model=run.model, error=str(error))
            self._end(run, "error", "")
            return
        if run.is_to_stop():
            # Cancelled between our look and the submission, when the engine did not know it.
            engine.cancel(run.sequence_id)
        elif not run.is_job and load.running + load.waiting >= load.slots:
            # Not before: what waits in the engine already would take the slot.
            self._make_way(run.model)

    def _make_way(self, model: str) -> None:
        """Take a background job out of a full engine, for an interactive request; it goes on when a slot is free."""
        with self._lock:
            jobs = [run for run in self._by_request.values() if isinstance(run, JobGeneration) and run.model == model]
            ready = [run for run in jobs if run.has_slot and not (run.is_yielding or run.is_to_stop())]
            if not ready:
                return
            latest = ready[-1]
            latest.is_yielding = True
        self._host[model].engine.cancel(latest.sequence_id)

    def _refuse(self, run: Generation, error: ApiError) -> None:
        try:
            run.refuse(error)
        finally:
            self._forget(run)

    def _forget(self, run: Generation) -> None:
        run.let_go()
        with self._lock:
            if self._runs.get(run.lease.response) is run:
                del self._runs[run.lease.response]
            self._by_request.pop(run.sequence_id, None)
            jobs_wait = self._jobs_wait
        if not run.is_job:
            self.ended.keep(run.lease.public_id, run.told)
        if jobs_wait:
            self.wake()

    def _tell(self, lease: Lease, first: int, events: list[EncodedEvent]) -> None:
        tell_readers(lease.public_id, first, events)

    def _lose(self, lease: Lease) -> None:
        run = self._runs.get(lease.response)
        if run is not None and run.lease == lease:
            self.cancel(run, "lost")

    # Run

    def _pump(self) -> None:
        """Turn chunks into events. All that has gathered for one response goes out together."""
        while (chunks := self._gathered()) is not None:
            grouped: dict[str, list[Chunk]] = {}
            for chunk in chunks:
                grouped.setdefault(chunk.request_id, []).append(chunk)
            for request_id, mine in grouped.items():
                run = self._by_request.get(request_id)
                if run is None:
                    continue
                try:
                    finish = run.feed(mine)
                except Exception:  # one response must not stop the pump of all
                    log.exception("worker.feed_failed", response=run.lease.public_id)
                    self.cancel(run, "fault")
                    finish = "error" if mine[-1].finish is not None else None
                if finish is None and run.is_to_stop():
                    self.cancel(run, run.stop_reason)
                if finish is not None:
                    self._finishers.submit(self._try_to_end, run, finish, mine[-1].error)

    def _gathered(self) -> list[Chunk] | None:
        """All chunks that wait, at least one; ``None`` when no more will come."""
        if self._no_more_chunks:
            return None
        chunks: list[Chunk] = []
        more = self._chunks.get()
        for _ in range(CHUNK_LISTS):  # an engine that goes on is no reason to wait
            if more is None:
                self._no_more_chunks = True
                return chunks or None
            chunks += more
            try:
                more = self._chunks.get_nowait()
            except queue.Empty:
                return chunks
        return chunks + more if more is not None else chunks

    def _try_to_end(self, run: Generation, finish: Finish, error: str) -> None:
        try:
            self._end(run, finish, error)
        except Exception:  # its future is not read, and its slot must be free
            log.exception("worker.end_failed", response=run.lease.public_id)
            self._forget(run)

    def _end(self, run: Generation, finish: Finish, error: str) -> None:
        """A sequence has ended: the answer, or a summary before it, or one that made way for another."""
        if isinstance(run, JobGeneration) and run.is_yielding and finish == "cancelled" and not run.is_to_stop():
            with self._lock:
                self._by_request.pop(run.sequence_id, None)
            self._generate(run, run.again())
            return
        if not run.is_compacting:
            self._close(run, finish, error)
            return
        with self._lock:
            self._by_request.pop(run.sequence_id, None)
        if finish in ("stop", "length") and not run.is_to_stop():
            self._compact(run, run.compacted)
        else:
            with_fresh_connection(self._refuse, run, ServerError(error) if error else run.interruption())

    def _close(self, run: Generation, finish: Finish, error: str) -> None:
        try:
            with_fresh_connection(run.close, finish, error=error)
        except Exception:  # its slot must be free all the same
            log.exception("worker.close_failed", response=run.lease.public_id)
        finally:
            self._forget(run)

    def cancel(self, run: Generation, reason: str) -> None:
        """Have the engine end a sequence. The first reason counts."""
        with self._lock:
            if not run.stop_reason:
                run.stop_reason = reason
            submitted = run.sequence_id in self._by_request
        if submitted:
            for model in self._host:
                model.engine.cancel(run.sequence_id)

    # Others ask

    def _listen(self) -> None:
        loop = asyncio.new_event_loop()
        self._listener_loop = loop
        task = loop.create_task(self._answer())
        loop.run_forever()
        task.cancel()
        loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        loop.close()

    async def _answer(self) -> None:
        subscription = None
        while subscription is None:
            try:
                subscription = await bus.subscribe(bus.process_group(self.id))
            except bus.BusUnavailable:
                await asyncio.sleep(bus.RECONNECT_SECONDS)
        try:
            while True:
                message = await subscription.receive()
                if message is None:
                    continue
                try:
                    self._hear(message)
                except Exception:  # the listener goes on
                    log.exception("worker.request_failed", type=type(message).__name__)
        finally:
            await subscription.close()

    def _hear(self, message: bus.Message | bus.Signal) -> None:
        match message:
            case CancelRow(row=row):
                run = self._runs.get(row)
                if run is not None:
                    self.cancel(run, "cancelled" if run.is_job else "left")
            case ResendEvents(response=response, first=first):
                self._resend(response, first)
            case CountTokens():
                self._counter.hear(message)
            case StopCounting(reply=reply):
                self._counter.forget(reply)
            case RememberThoughts(scope=scope, thoughts=thoughts):
                reasoning_echo().keep(scope, thoughts)
            case ForgetScopes(scopes=scopes):
                self._forget_owners(scopes)

    def _forget_owners(self, scopes: Iterable[str]) -> None:
        """Drop what is held of owners that are no more."""
        for scope in scopes:
            reasoning_echo().forget(scope)
            for model in self._host:
                model.engine.forget(scope)

    def _resend(self, public_id: str, first: int) -> None:
        told = self.ended.find(public_id)
        if told is None:
            told = next((run.told for run in self.live() if run.lease.public_id == public_id and not run.is_job), None)
        if told is not None:
            told.replay(first)

"""The engine that runs a real model: one thread that loads it, owns it and advances all sequences together.

Importing this module imports no model library; the thread does, when the engine starts.
"""

import contextlib
import gc
import logging
import threading
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from inference.blas import preload_blas
from inference.engine.memory_gate import NO_MEMORY, MemoryGate, Stopped
from inference.engine.scheduler import Scheduler
from inference.memory import Footprint, ModelMemory, bytes_for_prompts, memory_for_models, read_footprint
from inference.models.registry import ModelEntry
from inference.prefix_cache.disk_cache import DiskCache, DiskOptions
from inference.speculation.options import SpeculationOptions
from inference.types import STOPPED, Chunk, EngineLoad, GenerationRequest, ModelError, ModelInfo, Progress, Sink

if TYPE_CHECKING:
    from inference.engine.batch import Batch
    from inference.prefix_cache.prefix_cache import PrefixCache

log = logging.getLogger(__name__)

_DISK_SECONDS = 1.0
"""How long the start waits for the list of files in the prompt cache's directory, which goes on being read."""
_IDLE_SECONDS = 1.0
"""How often an idle engine checks whether its process is ending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MlxOptions:
    """batch_size: most sequences at once; prefill_step: most prompt tokens per step; prompt_cache_bytes: 0 caches none,
    None as much as one sequence of the whole context takes, within limits.

    blas_cache: directory of the libraries that make a Linux CPU fast; None serves without them, more slowly.
    most_tokens: shortens the model's context to what there is memory for.
    speculation: None drafts nothing.
    disk: where prompts are cached that may be; None caches them in memory alone. kv_bits: of the keys and values of
    sequences; None has those of the model.
    """

    batch_size: int = 32
    prefill_step: int = 256
    prompt_cache_bytes: int | None = None
    blas_cache: Path | None = None
    speculation: SpeculationOptions | None = field(default_factory=SpeculationOptions)
    disk: DiskOptions | None = None
    kv_bits: int | None = None
    most_tokens: int | None = None


class MlxEngine:
    """An Engine. A process may have several: on a CPU, two that compute at once are as fast together as one."""

    def __init__(
        self,
        entry: ModelEntry,
        *,
        sink: Sink,
        options: MlxOptions | None = None,
        memory: ModelMemory | None = None,
    ) -> None:
        """memory: its part of what all models share; without it there is no limit."""
        self.options = options or MlxOptions()
        self.info = ModelInfo(
            name=entry.name,
            digest=entry.digest,
            context_length=entry.context_length,
            vocab_size=entry.vocab_size,
            temperature=entry.temperature,
            top_p=entry.top_p,
        ).limited_to(self.options.most_tokens)
        self._directory = entry.path
        self._sink = sink
        self._memory = memory
        self._scheduler = Scheduler(self.options.batch_size)
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()
        self._closing = False
        self._load_error: ModelError | None = None
        self._prefix_cache: PrefixCache | None = None
        self._disk_cache = DiskCache(self.options.disk, model=entry.digest) if self.options.disk is not None else None
        self._to_forget: deque[str] = deque()
        self._to_release: deque[Collection[str]] = deque()
        self._to_retain: Collection[str] | None = None

    def start(self, *, progress: Progress | None = None) -> None:
        """Load the model on the engine's thread and return when it can serve. Raises ModelError; it may be called again
        then. When interrupted, it ends the thread and raises the interrupt.
        """
        if self._thread is not None:
            raise RuntimeError("the engine was started already")
        self._ready.clear()
        self._thread = threading.Thread(
            target=self._run, args=(progress or _silent,), name=f"engine-{self.info.name}", daemon=False
        )
        self._thread.start()
        try:
            while not self._ready.wait(0.5):  # in slices, so that a signal is handled meanwhile
                pass
        except BaseException:
            self.close()
            raise
        if self._load_error is not None:
            self._thread.join()
            self._thread, error, self._load_error = None, self._load_error, None
            raise error

    @property
    def is_running(self) -> bool:
        return self._scheduler.is_open

    def submit(self, request: GenerationRequest) -> None:
        self._scheduler.submit(request)

    def cancel(self, request_id: str) -> None:
        self._scheduler.cancel(request_id)

    def forget(self, scope: str) -> None:
        self._to_forget.append(scope)
        if self._disk_cache is not None:
            self._disk_cache.forget(scope)

    def retain(self, scopes: Collection[str]) -> None:
        self._to_retain = scopes
        if self._disk_cache is not None:
            self._disk_cache.retain(scopes)

    def holders(self) -> Collection[str]:
        cache = self._prefix_cache
        in_memory = cache.holders if cache is not None else set()
        return in_memory | self._disk_cache.holders() if self._disk_cache is not None else in_memory

    def release(self, holders: Collection[str]) -> None:
        self._to_release.append(holders)
        if self._disk_cache is not None:
            self._disk_cache.release(holders)

    def load(self) -> EngineLoad:
        cache = self._prefix_cache  # its own thread sets it to None when it ends
        load = self._scheduler.load()
        if cache is None:
            return load
        return replace(load, memory_cache=cache.memory_figures, disk_cache=cache.disk_figures)

    def close(self) -> None:
        self._closing = True
        self._scheduler.close()
        if self._thread is not None:
            self._thread.join()
        if self._disk_cache is not None:
            self._disk_cache.close()

    # The engine's thread.

    def _run(self, progress: Progress) -> None:
        if self.options.blas_cache is not None:
            preload_blas(self.options.blas_cache)
        memory = self._memory or ModelMemory(footprint=self._read_footprint())
        memory.account.budget.listen(self._scheduler.wake)
        try:
            ended = self._serve(memory, progress)
        except Exception as error:
            ended = Chunk(request_id="", finish="error", error=STOPPED)
            is_known = isinstance(error, ModelError)
            if not is_known:
                log.exception("the engine stopped")
            # A new error, since the frames of this one hold the model, which is to be freed before it is loaded again.
            self._load_error = ModelError(str(error) if is_known else f"The engine stopped ({error}).")
        self._scheduler.close()
        live = self._scheduler.drain()
        if ended.finish == "error" and live:
            log.error("the engine of %s stopped, and with it the requests %s", self.info.name, ", ".join(live))
        self._emit([_addressed(ended, request_id) for request_id in live])
        memory.account.budget.unlisten(self._scheduler.wake)
        self._free()
        memory.account.close()
        self._ready.set()
        with contextlib.suppress(ImportError):
            import mlx.core as mx

            mx.clear_streams()  # without this the process often aborts when it exits

    def _read_footprint(self) -> Footprint:
        return read_footprint(
            self._directory,
            memory=memory_for_models(),
            batch_size=self.options.batch_size,
            prefill_step=self.options.prefill_step,
            kv_bits=self.options.kv_bits,
        )

    def _free(self) -> None:
        """Release the model's memory."""
        self._prefix_cache = None
        gc.collect()  # an error's frames and the batch refer to each other
        _free_buffers()

    def _serve(self, memory: ModelMemory, progress: Progress) -> Chunk:
        """Load the model and run until the engine is closed; returns the chunk that then ends live sequences."""
        from inference.engine.model_loading import load_model

        loaded = load_model(
            self._directory, as_fp32=memory.footprint.as_fp32, kv_bits=self.options.kv_bits, progress=progress
        )
        from inference.engine.batch import Batch
        from inference.prefix_cache.layout import Layout
        from inference.prefix_cache.prefix_cache import PrefixCache

        memory.account.set_weights(loaded.weights_bytes + memory.footprint.step)
        gate = MemoryGate(memory, loaded.state_cost)
        layout = Layout.of_model(loaded.model)
        stated, context = self.options.prompt_cache_bytes, self.info.context_length
        most_cached = stated if stated is not None else bytes_for_prompts(loaded.state_cost, context=context)
        disk = self._disk_cache if layout is not None and most_cached else None
        if disk is not None and layout is not None:
            disk.open(layout, layout.signature(loaded.model))
        cache = self._prefix_cache = PrefixCache(
            most_cached, layout, disk=disk, worth_reading=self.options.prefill_step // 4
        )
        batch = Batch(
            loaded,
            self.info,
            prefill_step=self.options.prefill_step,
            prefix_cache=cache,
            speculation=self.options.speculation,
        )
        if disk is not None:
            disk.settle(_DISK_SECONDS)
        if not self._closing:
            self._scheduler.open()
        self._ready.set()
        try:
            while self._scheduler.is_open and threading.main_thread().is_alive():
                cache.resize(min(most_cached, memory.account.cache_limit))
                self._step(batch, gate, cache)
                memory.account.set_cache(cache.nbytes)
                if not len(batch) and not self._scheduler.wait(_IDLE_SECONDS):
                    _free_buffers()
        finally:
            batch.close()
        return Chunk(request_id="", finish="cancelled")

    def _step(self, batch: "Batch", gate: MemoryGate, cache: "PrefixCache") -> None:
        self._scheduler.begin_step()
        waiting, running = self._scheduler.take_cancelled()
        chunks = [Chunk(request_id=request_id, finish="cancelled") for request_id in waiting]
        for request_id in running:
            chunks += batch.cancel(request_id)
        while self._to_forget:
            cache.forget(self._to_forget.popleft())
        while self._to_release:
            cache.release(self._to_release.popleft())
        scopes, self._to_retain = self._to_retain, None
        if scopes is not None:
            cache.retain(scopes)
        for request in self._scheduler.admit(fits=gate.admits):
            chunks += batch.add(request) if request.id in gate else [_refused(request)]
        if gate.lacks_memory and not self._scheduler.load().waiting:
            gate.nothing_waits()
        if len(batch):
            chunks += batch.step()
        chunks = gate.note(chunks)
        for stopped in gate.outgrown():
            chunks += gate.note(self._stop(batch, stopped))
        self._scheduler.end_step()
        for chunk in chunks:
            if chunk.finish:
                self._scheduler.release(chunk.request_id)
        self._emit(chunks)

    def _stop(self, batch: "Batch", stopped: Stopped) -> list[Chunk]:
        """End a sequence that there is no memory for, or have it wait, of which nobody hears."""
        request = stopped.request
        chunks = batch.cancel(request.id)
        if stopped.is_over:
            return [replace(chunk, finish="length") if chunk.request_id == request.id else chunk for chunk in chunks]
        self._scheduler.put_back(request)
        return [chunk for chunk in chunks if chunk.request_id != request.id]

    def _emit(self, chunks: list[Chunk]) -> None:
        if not chunks:
            return
        try:
            self._sink(chunks)
        except Exception:  # an error of the caller does not end the engine
            log.exception("the engine's sink raised; its chunks are lost")


def _free_buffers() -> None:
    """Free the memory that MLX retains for its next arrays."""
    with contextlib.suppress(ImportError):
        import mlx.core as mx

        mx.clear_cache()


def _refused(request: GenerationRequest) -> Chunk:
    return Chunk(request_id=request.id, finish="error", error=NO_MEMORY)


def _addressed(chunk: Chunk, request_id: str) -> Chunk:
    return Chunk(request_id=request_id, finish=chunk.finish, error=chunk.error)


def _silent(stage: str, done: float) -> None:
    pass

"""Starts and stops the worker of a process."""

from inference.types import Progress

from .hosting import ModelHost
from .process import install_worker
from .runtime.pump import ChunkQueue
from .runtime.worker import GenerationWorker


def start_worker(*, progress: Progress | None = None) -> GenerationWorker:
    """Load the default model, announce all models and start to claim rows. Raises :class:`ModelError`.

    If loading is interrupted, the engine ends and the interrupt is raised again.
    """
    chunks = ChunkQueue()
    host = ModelHost(chunks.put)
    try:
        host.scan()
        host.load_default(progress=progress)
        worker = GenerationWorker(host, chunks)
        worker.start()
    except BaseException:
        host.close()
        raise
    install_worker(worker)
    return worker


def stop_worker(worker: GenerationWorker) -> None:
    """Drain the worker and end its threads."""
    install_worker(None)
    worker.stop()

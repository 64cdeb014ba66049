"""From settings to a running worker, and back."""

from inference.types import Progress

from .process import install_worker
from .runtime.hosted_models import ModelHost
from .runtime.pump import ChunkQueue
from .runtime.worker import GenerationWorker


def start_worker(*, progress: Progress | None = None) -> GenerationWorker:
    """Load the default model, announce all models and begin to work. Raises :class:`ModelError`.

    An interrupt while a model loads ends its engine, and is raised again.
    """
    chunks = ChunkQueue()
    host = ModelHost(chunks.put)
    try:
        host.scan()
        host.default().ensure_running(progress=progress)
        worker = GenerationWorker(host, chunks)
        worker.start()
    except BaseException:
        host.close()
        raise
    install_worker(worker)
    return worker


def stop_worker(worker: GenerationWorker) -> None:
    """End the worker in order."""
    install_worker(None)
    worker.stop()

"""From settings to a running worker, and back."""

from inference.types import Progress

from .hosted_models import ModelHost
from .process import install_worker
from .runtime import GenerationWorker


def start_worker(*, progress: Progress | None = None) -> GenerationWorker:
    """Load the default model, announce all models and begin to work. Raises :class:`ModelError`.

    An interrupt while a model loads ends its engine before it goes on.
    """
    worker = GenerationWorker()
    host = ModelHost(worker.sink)
    try:
        host.scan()
        host.default().ensure_running(progress=progress)
        worker.start(host)
    except BaseException:
        host.close()
        raise
    install_worker(worker)
    return worker


def stop_worker(worker: GenerationWorker) -> None:
    """End the worker in order."""
    install_worker(None)
    worker.stop()

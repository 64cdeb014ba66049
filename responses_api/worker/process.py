"""The one worker of this process, if it is a worker process."""

from .runtime.worker import GenerationWorker

_worker: GenerationWorker | None = None


def install_worker(worker: GenerationWorker | None) -> None:
    """Make ``worker`` the one that tasks of this process run on."""
    global _worker
    _worker = worker


def current_worker() -> GenerationWorker | None:
    """The worker of this process; ``None`` before it has loaded its models and after it has begun to stop."""
    return _worker

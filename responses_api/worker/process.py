"""The one worker of this process, if it is a worker process."""

from .runtime.worker import GenerationWorker

_worker: GenerationWorker | None = None


def install_worker(worker: GenerationWorker | None) -> None:
    """Make ``worker`` the one that this process's tasks use."""
    global _worker
    _worker = worker


def current_worker() -> GenerationWorker | None:
    """The worker of this process; ``None`` before it has loaded its models and when it is stopping."""
    return _worker

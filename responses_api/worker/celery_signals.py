"""Starting and stopping the generation worker with ``celery worker``: the team shape.

The embedded shape starts its worker itself, before Celery, and then nothing is done here.
"""

import gc
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog
from celery.signals import worker_init, worker_shutdown
from django.db import Error as DatabaseError

from inference.types import ModelError
from responses_api.management.progress import ProgressBars
from responses_api.services.processes.check_secret import WrongSecret, check_secret

from .process import current_worker
from .runtime.worker import GenerationWorker
from .startup import start_worker, stop_worker

log = structlog.get_logger(__name__)

SWITCH_SECONDS = 0.0005

_started: GenerationWorker | None = None


@worker_init.connect
def load_models(**_kwargs: Any) -> None:
    """Load the models before Celery takes its first message. If one can't be loaded, the process ends with one
    sentence.
    """
    global _started
    if current_worker() is not None:
        return
    try:
        check_secret()
        with interruptible(), ProgressBars() as bars:
            _started = start_worker(progress=bars)
    except KeyboardInterrupt:
        sys.exit(0)
    except (ModelError, DatabaseError, WrongSecret) as error:
        sys.exit(f"error: {error}")
    # The engine's thread needs the lock of the interpreter several times per step: let it wait a tenth of the default.
    sys.setswitchinterval(SWITCH_SECONDS)
    # The objects created so far are permanent: exclude them from further collections.
    gc.collect()
    gc.freeze()
    log.info("worker.ready", worker=_started.id)


@worker_shutdown.connect
def close_models(**_kwargs: Any) -> None:
    """Celery takes no more messages: end the runs and close the engines."""
    if _started is not None:
        stop_worker(_started)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM raise KeyboardInterrupt during the block, since Celery installs its own handlers later."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

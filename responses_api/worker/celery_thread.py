"""Celery's worker on a thread of this process: the embedded shape."""

import threading

from celery import Celery
from celery.worker import WorkController
from celery.worker import state as worker_state

from responses_api.services.jobs.dispatch import TASK

STOP_SECONDS = 10


class CeleryThread:
    """One ``WorkController`` on one thread. Two in a process would fight over the queue selection."""

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._controller = WorkController(
            app=app,
            pool="solo",
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
            task_events=False,
        )
        self._thread = threading.Thread(target=self._run, name="celery", daemon=True)

    def start(self) -> None:
        """Begin to take messages."""
        self._thread.start()

    def stop(self) -> None:
        """Take no more messages. Messages not started are lost, which does no harm: rows are the queue."""
        worker_state.should_stop = 0  # type: ignore[assignment]  # the exit status, None while it runs
        # Celery checks this after each message, or every two seconds, and takes one more message before it stops.
        for _ in range(2):
            self._app.send_task(TASK)
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        try:
            self._controller.start()
        except SystemExit:
            return

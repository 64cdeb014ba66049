"""Wakes workers. The message has no content: the rows are the queue."""

import structlog
from celery import current_app
from celery.utils import uuid

from responses_api.errors import Overloaded

log = structlog.get_logger(__name__)

TASK = "responses_api.run_generations"
JOB_TASK = "responses_api.run_background_jobs"


def wake_workers(*, background: bool = False) -> None:
    """Send one wake-up, for interactive requests or for background jobs.

    Raises :class:`Overloaded` when the broker can't be reached.
    """
    amqp = current_app.amqp
    # `send_task` without its look-ups for other kinds of tasks, since every request waits for this.
    task = JOB_TASK if background else TASK
    message = amqp.create_task_message(uuid(), task, argsrepr="()", kwargsrepr="{}")
    try:
        with current_app.producer_or_acquire() as producer:
            amqp.send_task_message(producer, task, message)
    except Exception as error:  # whatever the transport raises: a refused connection has many types
        log.warning("dispatch.broker_unavailable", error=str(error))
        raise Overloaded(
            "The server cannot reach its message broker at the moment. Try again in a few seconds."
        ) from error

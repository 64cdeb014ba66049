"""The Celery tasks. A message only says that there is work; what to do stands in the rows."""

from celery import shared_task

from responses_api.services.dispatch import TASK
from responses_api.worker.process import current_worker


@shared_task(name=TASK, ignore_result=True)
def run_generations() -> None:
    """Have what waits claimed and begun."""
    worker = current_worker()
    if worker is not None:
        worker.wake()

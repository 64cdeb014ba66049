"""The Celery tasks. A message only says that there is work; the work itself is in the rows."""

from celery import shared_task

from responses_api.services.jobs.dispatch import JOB_TASK, TASK
from responses_api.worker.process import current_worker


@shared_task(name=TASK, ignore_result=True)
def run_generations() -> None:
    """Claim and start waiting requests."""
    worker = current_worker()
    if worker is not None:
        worker.wake()


@shared_task(name=JOB_TASK, ignore_result=True)
def run_background_jobs() -> None:
    """Claim and start waiting background jobs, as far as slots are free."""
    worker = current_worker()
    if worker is not None:
        worker.wake(background=True)

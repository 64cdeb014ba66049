"""Checks of background jobs only: a worker's refusal would come too late, after the request was answered."""

from django.conf import settings

from responses_api.caller import Caller
from responses_api.errors import UnsupportedParameter
from responses_api.protocol import CreateResponse, input_items
from responses_api.selectors.history import history_items
from responses_api.services.prompts.assemble_history import Assembly
from responses_api.services.prompts.render_prompt import history_and_sent

from .admission_limits import refuse_job_when_full
from .find_history import History


def refuse_where_no_jobs_run() -> None:
    """Raise a 400 where the server runs no background jobs."""
    off = {
        "RESPONSES_BACKGROUND_MAX_JOBS": settings.RESPONSES_BACKGROUND_MAX_JOBS,
        "RESPONSES_STORE_MAX_ENTRIES": settings.RESPONSES_STORE_MAX_ENTRIES,
        "RESPONSES_STORE_MAX_BYTES": settings.RESPONSES_STORE_MAX_BYTES,
    }
    for name, value in off.items():
        if value == 0:
            raise UnsupportedParameter(
                f"This server runs no background responses ({name} is 0). Leave `background` out.", param="background"
            )


def check_job(request: CreateResponse, *, caller: Caller, history: History, assembly: Assembly) -> None:
    """Raise a 429 when there are too many jobs, a 400 for a call without its output or an output without its call.

    Jobs are counted again when the row is inserted; the check here avoids reading a history in vain.
    """
    refuse_job_when_full(key_id=None if caller.key is None else caller.key.pk)
    assembly.add(history.size)
    items = history_items(None if history.turn is None else history.turn.pk)
    history_and_sent(items, input_items(request), owner=assembly.owner, take=assembly.add)

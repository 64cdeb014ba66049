"""Opening stored responses for a caller who reads or continues one: counted, and noted as use, in one place."""

from responses_api.caller import Caller
from responses_api.counting import STORE_HITS, STORE_MISSES, count
from responses_api.errors import NotFound, PreviousResponseNotFound
from responses_api.models import Response
from responses_api.selectors.responses import get_previous, get_response

from .touch_store import touch_response


def open_response(*, caller: Caller, response_id: str) -> Response:
    """The response that is read. Raises the 404 of :func:`get_response`."""
    try:
        row = get_response(caller=caller, response_id=response_id)
    except NotFound:
        count(STORE_MISSES)
        raise
    count(STORE_HITS)
    touch_response(caller=caller, response_id=response_id)
    return row


def open_previous(*, caller: Caller, response_id: str) -> Response:
    """The response that a request continues. Raises what :func:`get_previous` does."""
    try:
        row = get_previous(caller=caller, response_id=response_id)
    except PreviousResponseNotFound:
        count(STORE_MISSES)
        raise
    count(STORE_HITS)
    touch_response(caller=caller, response_id=response_id)
    return row

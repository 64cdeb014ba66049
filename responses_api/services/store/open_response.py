"""Opens stored responses for a caller who reads or continues one. Each access is counted and recorded as use."""

from collections.abc import Callable

from responses_api.caller import Caller
from responses_api.counting import STORE_HITS, STORE_MISSES, count
from responses_api.errors import NotFound, PreviousResponseNotFound
from responses_api.models import Response
from responses_api.selectors.responses import get_previous, get_response

from .touch_store import touch_response


def open_response(*, caller: Caller, response_id: str) -> Response:
    """Open a response to read it. Raises the 404 of :func:`get_response`."""
    return _opened(get_response, caller, response_id)


def open_previous(*, caller: Caller, response_id: str) -> Response:
    """Open the response that a request continues. Raises what :func:`get_previous` does."""
    return _opened(get_previous, caller, response_id)


def _opened(get: Callable[..., Response], caller: Caller, response_id: str) -> Response:
    try:
        row = get(caller=caller, response_id=response_id)
    except (NotFound, PreviousResponseNotFound):
        count(STORE_MISSES)
        raise
    count(STORE_HITS)
    touch_response(caller=caller, response_id=response_id)
    return row

"""Listening on the bus on behalf of a request."""

from responses_api import bus
from responses_api.errors import Overloaded


async def listen(group: str) -> bus.Subscription:
    """Listen on ``group``; the caller closes the subscription. Raises :class:`Overloaded` without a broker."""
    try:
        return await bus.subscribe(group)
    except bus.BusUnavailable as error:
        raise Overloaded(
            "The server cannot reach its message broker at the moment. Try again in a few seconds."
        ) from error

"""Whether a response will be stored, and the refusals of requests whose response could not be."""

from collections.abc import Mapping
from typing import Any

import orjson
from django.conf import settings

from responses_api.caller import Caller
from responses_api.counting import STORE_REFUSALS, count
from responses_api.errors import NO_RETRY, EntryTooLarge, InvalidRequest, RateLimited, RequestTooLarge
from responses_api.protocol import CreateResponse
from responses_api.protocol.json.writer import write_json


def is_to_be_stored(*, caller: Caller, request: CreateResponse) -> bool:
    """Whether the response is stored: as the request says, else as the project, else as the server does.

    Where storing is turned off, a request that asks for it is refused, and the defaults are ignored.
    """
    if settings.RESPONSES_STORE_MAX_ENTRIES == 0:
        if request.store:
            raise InvalidRequest(
                "This server stores no responses (RESPONSES_STORE_MAX_ENTRIES is 0). Send `store: false`, or leave "
                "`store` out.",
                param="store",
            )
        return False
    if request.store is not None:
        return request.store
    if caller.project.store_default is not None:
        return caller.project.store_default
    return bool(settings.RESPONSES_STORE_DEFAULT)


def advice(*, background: bool) -> str:
    """How to send the request without having it stored: a background job is always stored."""
    return "leave `background` out and send `store: false`" if background else "send `store: false`"


def refuse_what_will_be_too_large(
    *, history: int, body: int, request: int, payload: dict[str, Any], background: bool
) -> None:
    """Raise :class:`EntryTooLarge` when a response that has no output yet is already too large to be stored.

    All sizes are bytes: of the history's items, of the object without output, and of the request's ``payload``.
    """
    if history + body + request <= settings.RESPONSES_ENTRY_MAX_BYTES:
        return
    # Instructions and tools are part of the object already: only the input is added to it.
    text = payload.get("input") or ""
    try:
        sent = len(text.encode() if isinstance(text, str) else write_json(text))
        refuse_too_large(history + body + sent, background=background)
    except EntryTooLarge:
        count(STORE_REFUSALS)
        raise


def refuse_large_echo(body: Mapping[str, Any], size: int) -> None:
    """Raise :class:`RequestTooLarge` when the object without output, of ``size`` bytes, is too large for the events."""
    limit = settings.RESPONSES_ECHO_MAX_BYTES
    if size > limit:
        named = max(("instructions", "tools"), key=lambda name: len(orjson.dumps(body[name])))
        raise RequestTooLarge(
            f"Instructions, tools and settings have {size} bytes, and may have {limit} (RESPONSES_ECHO_MAX_BYTES), for "
            f"a stream repeats them in several events. Shorten `{named}`, or say it in `input`.",
            param=named,
        )


def refuse_too_large(size: int, *, background: bool) -> None:
    """Raise :class:`EntryTooLarge` when a response of ``size`` bytes, its history included, can't be stored."""
    limit = settings.RESPONSES_ENTRY_MAX_BYTES
    if size > limit:
        raise EntryTooLarge(
            f"With its history this response has {size} bytes, and a stored one may have {limit} "
            "(RESPONSES_ENTRY_MAX_BYTES). Shorten the input, begin without a history, or "
            f"{advice(background=background)}.",
            param="input",
        )


def refuse_when_jobs_fill_the_store(*, active: int, request: int, background: bool) -> None:
    """Raise :class:`RateLimited` when the ``active`` bytes of running jobs and this request exceed the store's limit.

    A limit of 0 bytes is not checked here: each response is evicted at once.
    """
    limit = settings.RESPONSES_STORE_MAX_BYTES
    if not limit or active + request <= limit:
        return
    count(STORE_REFUSALS)
    if request > limit:
        raise RateLimited(
            f"The request has {request} bytes, more than this server stores at all (RESPONSES_STORE_MAX_BYTES, "
            f"{limit}). Shorten the input, or {advice(background=background)}.",
            headers=NO_RETRY,
        )
    raise RateLimited(
        f"Responses that are being generated take the {limit} bytes that this server stores "
        "(RESPONSES_STORE_MAX_BYTES). Send the request again when some have ended, or "
        f"{advice(background=background)}."
    )

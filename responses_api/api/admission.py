"""Authentication and parsing of a create request, the same for the JSON door and the stream door."""

from collections.abc import Callable
from typing import Any

from responses_api.caller import Caller
from responses_api.models import Response
from responses_api.protocol import parse_create
from responses_api.protocol.compaction import parse_compact
from responses_api.readers.answer_create import Admission
from responses_api.readers.web_process import web_process
from responses_api.services.accounts.authenticate import authenticate
from responses_api.services.admission.create_compaction import create_compaction
from responses_api.services.admission.create_response import create_response, new_response_id

from .origin import is_foreign_page, is_forwarded
from .request_scope import CALLER, Scope, forget_body, header, payload


def identify(scope: Scope) -> Caller:
    """Find out who asks, by the headers. Raises :class:`AuthenticationFailed` or :class:`PermissionDenied`."""
    return authenticate(
        authorization=header(scope, b"authorization"),
        x_api_key=header(scope, b"x-api-key"),
        is_forwarded=is_forwarded(scope),
        is_foreign_page=is_foreign_page(scope),
    )


def caller_of(scope: Scope) -> Caller:
    """Who asks: the router has found out, before anything else of the request was looked at."""
    caller: Caller = scope[CALLER]
    return caller


def admission(scope: Scope) -> Admission:
    """What admits the create request of ``scope``."""

    def admit(*, public_id: str, reader: str) -> None:
        value = payload(scope)
        request = parse_create(value)
        create_response(caller=caller_of(scope), request=request, public_id=public_id, payload=value, reader=reader)
        forget_body(scope)

    return admit


def job_admission(scope: Scope, *, public_id: str = "") -> Callable[[], Response]:
    """What admits the background create request of ``scope``, under this id if there is one; its row."""

    def admit() -> Response:
        web_process.refuse_when_stopping()
        value = payload(scope)
        request = parse_create(value)
        row = create_response(
            caller=caller_of(scope), request=request, public_id=public_id or new_response_id(), payload=value
        )
        forget_body(scope)
        return row

    return admit


def wants_job(value: Any) -> bool:
    """Whether a create request asks to be run in the background."""
    return isinstance(value, dict) and value.get("background") is True


def compaction_admission(caller: Caller, value: Any) -> Admission:
    """What admits a compaction."""

    def admit(*, public_id: str, reader: str) -> None:
        request = parse_compact(value)
        create_compaction(caller=caller, request=request, public_id=public_id, payload=value, reader=reader)

    return admit

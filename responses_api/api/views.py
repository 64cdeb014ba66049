"""The HTTP endpoints. Views translate; services and selectors decide."""

from typing import Any

from asgiref.sync import async_to_sync
from django.db import connection
from rest_framework.request import Request
from rest_framework.response import Response

from responses_api.caller import Caller
from responses_api.database.threads import in_admission_thread
from responses_api.protocol import (
    deleted_response,
    model_list,
    model_object,
    parse_list_query,
    parse_retrieve_query,
    refuse_query,
)
from responses_api.readers.answer_create import Admission, running_response
from responses_api.selectors.input_items import list_input_items
from responses_api.selectors.models import get_model, list_models
from responses_api.selectors.responses import wire_response
from responses_api.services.jobs.cancel_response import cancel_response
from responses_api.services.prompts.assemble_history import assembling
from responses_api.services.prompts.show_items import shown_items
from responses_api.services.store.delete_response import delete_response
from responses_api.services.store.open_response import open_response

from .admission import admission, job_admission, wants_job
from .endpoint import Endpoint
from .request_scope import PAYLOAD, query_pairs


def caller(request: Request) -> Caller:
    """Who asks; the permission has checked that there is somebody."""
    assert isinstance(request.auth, Caller)
    return request.auth


def arguments(request: Request) -> list[tuple[str, str]]:
    """The query string in order."""
    return query_pairs(request._request.scope)  # type: ignore[attr-defined]


class ResponsesView(Endpoint):
    """``POST /responses`` for callers who want an object: the whole one, or that of a job that has been queued.

    Streams don't come here (see the router).
    """

    def post(self, request: Request) -> Response:
        scope = request._request.scope  # type: ignore[attr-defined]
        # Held while it waits, the connection would be missing to others.
        connection.close()
        if wants_job(scope.get(PAYLOAD)):
            row = async_to_sync(in_admission_thread)(caller(request).name, job_admission(scope))
            return Response(wire_response(row))
        return Response(async_to_sync(wait_for_response)(admission(scope), caller(request)))


async def wait_for_response(admit: Admission, caller: Caller) -> dict[str, Any]:
    """Run a request to its end. A client that leaves cancels this, and that cancels the job."""
    async with running_response(admit, caller=caller) as follower:
        return await follower.result()


class ResponseView(Endpoint):
    """A stored response."""

    def get(self, request: Request, response_id: str) -> Response:
        query = parse_retrieve_query(arguments(request))
        row = open_response(caller=caller(request), response_id=response_id)
        found = wire_response(row)
        found["output"] = shown_items(found["output"], include=query.include, owner=caller(request).scope)
        return Response(found)

    def delete(self, request: Request, response_id: str) -> Response:
        refuse_query(arguments(request))
        delete_response(caller=caller(request), response_id=response_id)
        return Response(deleted_response(response_id))


class CancelView(Endpoint):
    """Ends a background response."""

    reads_body = False

    def post(self, request: Request, response_id: str) -> Response:
        refuse_query(arguments(request))
        connection.close()
        return Response(async_to_sync(cancel_response)(caller=caller(request), response_id=response_id))


class InputItemsView(Endpoint):
    """A response's input, page by page."""

    def get(self, request: Request, response_id: str) -> Response:
        query = parse_list_query(arguments(request))
        row = open_response(caller=caller(request), response_id=response_id)
        with assembling(caller(request).scope) as assembly:
            page = list_input_items(row, query=query, take=assembly.add)
            page["data"] = shown_items(page["data"], include=query.include, owner=caller(request).scope)
        return Response(page)


class ModelsView(Endpoint):
    """What this server serves, aliases included."""

    def get(self, request: Request) -> Response:
        return Response(model_list([model_object(name, **about) for name, about in list_models()]))


class ModelView(Endpoint):
    """One model or alias."""

    def get(self, request: Request, name: str) -> Response:
        return Response(model_object(name, **get_model(name)))

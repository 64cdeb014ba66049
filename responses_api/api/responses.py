"""``/responses`` and the addresses below it. Views translate; services and selectors decide."""

from asgiref.sync import async_to_sync
from django.db import connection
from rest_framework.request import Request
from rest_framework.response import Response

from responses_api.caller import Caller
from responses_api.database.threads import in_admission_thread
from responses_api.protocol import deleted_response, objects, parse_list_query, parse_retrieve_query, refuse_query
from responses_api.protocol.objects.usage import input_tokens
from responses_api.readers.answer_create import Create, create_job, running_response
from responses_api.readers.request_body import RequestBody
from responses_api.selectors.input_items import list_input_items
from responses_api.selectors.responses import wire_response
from responses_api.services.admission.count_input_tokens import count_input_tokens
from responses_api.services.admission.create_compaction import create_compaction
from responses_api.services.admission.create_response import create_response, new_response_id
from responses_api.services.jobs.cancel_response import cancel_response
from responses_api.services.prompts.assemble_history import assembling
from responses_api.services.prompts.show_items import shown_items
from responses_api.services.store.delete_response import delete_response
from responses_api.services.store.open_response import open_response

from .endpoint import Endpoint

# A view that waits for anything but the database closes its connection first, so that others can use it.


@async_to_sync
async def whole_response(
    create: Create, *, caller: Caller, body: RequestBody
) -> objects.Response | objects.CompactedHistory:
    """Run a request to its end. When the client leaves, this is cancelled, and so is the job."""
    async with running_response(create, caller=caller, body=body) as follower:
        return await follower.result()


class ResponsesView(Endpoint):
    """``POST /responses`` without ``stream``: the whole response, or that of a job that has been queued.

    Streams don't come here (see the router).
    """

    def post(self, request: Request) -> Response:
        connection.close()
        if self.body.asks_for("background"):
            row = async_to_sync(in_admission_thread)(
                self.caller.name, create_job, caller=self.caller, body=self.body, public_id=new_response_id()
            )
            return Response(wire_response(row))
        return Response(whole_response(create_response, caller=self.caller, body=self.body))


class CompactionView(Endpoint):
    """``POST /responses/compact``: the end of a history and one compaction item for the rest. Nothing is stored."""

    def post(self, request: Request) -> Response:
        connection.close()
        return Response(whole_response(create_compaction, caller=self.caller, body=self.body))


class InputTokensView(Endpoint):
    """``POST /responses/input_tokens``: the tokens of a create request's input, counted by a worker."""

    def post(self, request: Request) -> Response:
        connection.close()
        tokens = async_to_sync(count_input_tokens)(caller=self.caller, payload=self.body.value())
        return Response(input_tokens(tokens))


class ResponseView(Endpoint):
    """A stored response."""

    def get(self, request: Request, response_id: str) -> Response:
        query = parse_retrieve_query(self.query)
        row = open_response(caller=self.caller, response_id=response_id)
        response = wire_response(row)
        response["output"] = shown_items(response["output"], include=query.include, owner=self.caller.scope)
        return Response(response)

    def delete(self, request: Request, response_id: str) -> Response:
        refuse_query(self.query)
        delete_response(caller=self.caller, response_id=response_id)
        return Response(deleted_response(response_id))


class CancelView(Endpoint):
    """Ends a background response."""

    reads_body = False

    def post(self, request: Request, response_id: str) -> Response:
        refuse_query(self.query)
        connection.close()
        return Response(async_to_sync(cancel_response)(caller=self.caller, response_id=response_id))


class InputItemsView(Endpoint):
    """A response's input, page by page."""

    def get(self, request: Request, response_id: str) -> Response:
        query = parse_list_query(self.query)
        row = open_response(caller=self.caller, response_id=response_id)
        with assembling(self.caller.scope) as assembly:
            page = list_input_items(row, query=query, take=assembly.add)
            page["data"] = shown_items(page["data"], include=query.include, owner=self.caller.scope)
        return Response(page)

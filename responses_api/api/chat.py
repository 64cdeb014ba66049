"""``/chat/completions``."""

from asgiref.sync import async_to_sync
from django.db import connection
from rest_framework.request import Request
from rest_framework.response import Response

from responses_api.caller import Caller
from responses_api.chat import ChatCompletion
from responses_api.readers.answer_chat import running_chat
from responses_api.readers.request_body import RequestBody

from .endpoint import Endpoint


@async_to_sync
async def whole_completion(*, caller: Caller, body: RequestBody) -> ChatCompletion:
    """Run a request to its end. When the client leaves, this is cancelled, and so is the job."""
    async with running_chat(caller=caller, body=body) as reader:
        return await reader.completion()


class ChatCompletionsView(Endpoint):
    """``POST /chat/completions`` without ``stream``. Streams don't come here (see the router)."""

    def post(self, request: Request) -> Response:
        connection.close()
        return Response(whole_completion(caller=self.caller, body=self.body))

"""The ASGI application."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "responses_site.settings")
django_application = get_asgi_application()

# These modules can only be imported once Django's apps are ready.
from responses_api.api.chat import ChatCompletionsView  # noqa: E402
from responses_api.api.responses import ResponsesView  # noqa: E402
from responses_api.consumers.router import ApiRouter  # noqa: E402
from responses_api.consumers.sse import (  # noqa: E402
    ChatStreamConsumer,
    ResponseStreamConsumer,
    RetrievedStreamConsumer,
)

application = ApiRouter(
    django=django_application,
    streams={
        ResponsesView: ResponseStreamConsumer.as_asgi(),
        ChatCompletionsView: ChatStreamConsumer.as_asgi(),
    },
    retrieved_stream=RetrievedStreamConsumer.as_asgi(),
)

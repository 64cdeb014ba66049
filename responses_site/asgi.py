"""The ASGI application."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "responses_site.settings")
django_application = get_asgi_application()

# These modules can only be imported once Django's apps are ready.
from responses_api.consumers.router import ApiRouter  # noqa: E402
from responses_api.consumers.sse import ResponseStreamConsumer, RetrievedStreamConsumer  # noqa: E402

application = ApiRouter(
    django=django_application,
    stream=ResponseStreamConsumer.as_asgi(),
    retrieved_stream=RetrievedStreamConsumer.as_asgi(),
)

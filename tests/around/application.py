"""The ASGI application behind httpx, in this process."""

from typing import Any

import httpx

from responses_site.asgi import application


def browser(**headers: str) -> httpx.AsyncClient:
    """A client that calls the application without a server."""
    app: Any = application
    transport = httpx.ASGITransport(app)
    return httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers)

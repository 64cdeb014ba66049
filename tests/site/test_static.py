"""Static files, served without collectstatic."""

import httpx
from django.core.asgi import get_asgi_application


async def test_the_admin_has_its_styles() -> None:
    """They are served under ASGI from their packages, and cached by the browser."""
    transport = httpx.ASGITransport(get_asgi_application())  # type: ignore[arg-type]  # the stubs disagree
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        response = await client.get("/static/admin/css/base.css")
        again = await client.get(
            "/static/admin/css/base.css", headers={"If-Modified-Since": response.headers["Last-Modified"]}
        )
    assert response.status_code == 200
    assert response.headers["Content-Type"].startswith("text/css")
    assert int(response.headers["Content-Length"]) == len(response.content) > 10_000
    assert (again.status_code, again.content) == (304, b"")

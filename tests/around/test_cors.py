"""Pages of other origins: refused by default, allowed by `RESPONSES_CORS_ORIGINS`."""

from typing import Any

import httpx
import pytest
from asgiref.sync import sync_to_async

from responses_api.services.accounts.authenticate import default_project
from responses_api.services.accounts.create_key import create_key

from .application import browser

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = "https://chat.example.com"
PREFLIGHT = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}


def cors_headers(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control-")}


async def test_no_header_is_sent_by_default() -> None:
    """A preflight is answered like any OPTIONS."""
    async with browser(origin=PAGE) as page:
        for answer in (await page.get("/v1/models"), await page.options("/v1/responses", headers=PREFLIGHT)):
            assert not cors_headers(answer)
            assert "Origin" not in answer.headers.get("vary", "")
        assert answer.status_code == 403


@pytest.mark.parametrize("allowed", [(PAGE, "tauri://localhost"), ("*",)])
async def test_a_page_of_an_allowed_origin_reads_answers(settings: Any, allowed: tuple[str, ...]) -> None:
    """JSON, errors of Django and of the ASGI application, unknown routes; with and without `/v1`."""
    settings.RESPONSES_CORS_ORIGINS = allowed
    async with browser(origin=PAGE) as page:
        for answer in (
            await page.get("/v1/models"),
            await page.get("/responses/resp_unknown"),
            await page.get("/v1/nothing"),
            await page.post("/responses", json={"input": 1, "stream": True}),
            await page.post("/v1/responses", content=b"{"),
        ):
            assert answer.headers["access-control-allow-origin"] == PAGE
            assert "Origin" in answer.headers["vary"]
            exposed = answer.headers["access-control-expose-headers"].split(", ")
            assert {"x-request-id", "retry-after", "x-ratelimit-remaining-tokens"} <= set(exposed)
            assert "access-control-allow-credentials" not in answer.headers


async def test_a_preflight_needs_no_key(settings: Any) -> None:
    """The real request does."""
    settings.RESPONSES_CORS_ORIGINS = (PAGE,)
    project = await sync_to_async(default_project)()
    await sync_to_async(create_key)(project=project, name="laptop")
    async with browser(origin=PAGE) as page:
        answer = await page.options("/v1/responses", headers=PREFLIGHT)
        assert (answer.status_code, answer.content) == (204, b"")
        assert answer.headers["access-control-allow-origin"] == PAGE
        assert answer.headers["access-control-allow-methods"] == "GET, POST, DELETE"
        assert answer.headers["access-control-allow-headers"] == "authorization"
        assert int(answer.headers["access-control-max-age"]) > 0
        assert answer.headers["x-request-id"].startswith("req_")
        refused = await page.get("/v1/models")
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == PAGE


async def test_a_preflight_names_the_headers_that_sdks_send(settings: Any) -> None:
    """Prefixes allow the headers asked for; others are left out."""
    settings.RESPONSES_CORS_ORIGINS = ("*",)
    asked = "Content-Type, x-stainless-os,openai-organization, cookie, x-api-key, x-evil"
    async with browser(origin=PAGE) as page:
        answer = await page.options("/responses", headers={**PREFLIGHT, "access-control-request-headers": asked})
        named = answer.headers["access-control-allow-headers"]
        assert named == "content-type, x-stainless-os, openai-organization, x-api-key"
        answer = await page.options("/responses", headers={"access-control-request-method": "GET"})
        assert "authorization" in answer.headers["access-control-allow-headers"]


async def test_a_foreign_origin_gets_no_headers(settings: Any) -> None:
    """Neither does a request without an origin; `Vary` tells caches that answers depend on it."""
    settings.RESPONSES_CORS_ORIGINS = (PAGE,)
    async with browser() as page:
        for origin in ({}, {"origin": "https://evil.example"}, {"origin": PAGE + ".evil.example"}, {"origin": "null"}):
            answer = await page.get("/v1/models", headers=origin)
            assert not cors_headers(answer)
            assert "Origin" in answer.headers["vary"]
            assert not cors_headers(await page.options("/v1/responses", headers={**PREFLIGHT, **origin}))


@pytest.mark.parametrize("path", ["/", "/admin/", "/admin/login/", "/static/x.css", "/healthz", "/v1beta", "/adminv1"])
async def test_only_the_api_is_opened(settings: Any, path: str) -> None:
    """Never the pages that use cookies."""
    settings.RESPONSES_CORS_ORIGINS = ("*",)
    async with browser(origin=PAGE) as page:
        assert not cors_headers(await page.get(path))
        assert not cors_headers(await page.options(path, headers=PREFLIGHT))

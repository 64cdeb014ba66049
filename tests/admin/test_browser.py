"""A walk through the admin in Chromium."""

import asyncio
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.async_api import ConsoleMessage, Dialog, Page, async_playwright, expect
from pytest_django.live_server_helper import LiveServer

from responses_api.models import ApiKey
from responses_api.services.accounts.authenticate import authenticate
from responses_api.services.accounts.create_administrator import create_administrator
from tests.admin.conftest import PASSWORD
from tests.factories import make_project, make_response, make_worker

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@dataclass
class Seen:
    """What the browser saw."""

    secret: str = ""
    complaints: list[str] = field(default_factory=list)
    """Script errors, violations of the policy, and dialogs that scripts opened."""


async def walk(server: str) -> Seen:
    """Walk through the admin in a new browser."""
    seen = Seen()

    def record(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            seen.complaints.append(message.text)

    async def dismiss(dialog: Dialog) -> None:
        seen.complaints.append(dialog.message)
        await dialog.dismiss()

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = await browser.new_page()
        page.on("console", record)
        page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        page.on("dialog", dismiss)
        await sign_in(page, server)
        seen.secret = await make_key(page)
        await read_conversation(page, server)
        await browser.close()
    return seen


async def sign_in(page: Page, server: str) -> None:
    """From the front page to the overview."""
    await page.goto(server)
    await expect(page.locator(".base")).to_contain_text(f"{server}/v1")
    await page.get_by_role("button", name="Copy").first.click()
    await expect(page.locator(".base .copy")).to_have_text("Copied")
    await page.get_by_role("link", name="Sign in").click()
    await page.get_by_label("Username").fill("ada")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Log in").click()
    await expect(page.locator(".figure").first).to_contain_text("Responses today")


async def make_key(page: Page) -> str:
    """Return the secret, which neither a reload nor going back shows again."""
    await page.locator(".model-apikey").get_by_role("link", name="Add").click()
    await page.get_by_label("Name").fill("laptop")
    await page.get_by_role("button", name="Save").click()
    secret = await page.locator("#secret").inner_text()
    await page.wait_for_url(re.compile(r"/apikey/\d+/change/$"))
    await page.reload()
    await expect(page.get_by_label("Name")).to_have_value("laptop")
    assert secret not in await page.content()
    await page.go_back()
    assert secret not in await page.content()
    return secret


async def read_conversation(page: Page, server: str) -> None:
    """From the list to the messages."""
    await page.goto(f"{server}/admin/responses_api/response/")
    await expect(page.locator("#result_list tbody tr")).to_have_count(2)
    await page.locator("#result_list").get_by_role("link", name="<script>alert('asked')</script>").click()
    bubbles = page.locator(".bubble")
    await expect(bubbles).to_have_count(4)
    await expect(bubbles.nth(0).locator("em")).to_have_text("capital")
    await expect(bubbles.nth(1).locator("strong")).to_have_text("Lisbon")
    await expect(bubbles.nth(2)).to_contain_text("<script>alert('asked')</script>")
    await expect(page.locator(".bubble-answer")).to_contain_text("Nothing <img src=x onerror=alert(1)>")
    await expect(page.locator(".raw pre")).to_be_hidden()
    await page.locator(".raw summary").click()
    await expect(page.locator(".raw pre")).to_contain_text('"object": "response"')


def test_from_the_front_page_to_a_conversation(live_server: LiveServer) -> None:
    """Sign in, make a key, see its secret once, find a response, read its conversation; no injected script runs."""
    if not CHROMIUM.exists():
        pytest.skip(f"needs Chromium at {CHROMIUM}")
    create_administrator(username="ada", password=PASSWORD)
    project = make_project()
    make_worker()
    first = make_response("What is the *capital* of Portugal?", "It is **Lisbon**.", project=project)
    text = "<script>alert('asked')</script>"
    make_response(text, "Nothing <img src=x onerror=alert(1)>", project=project, previous=first)
    seen = asyncio.run(walk(live_server.url))
    assert seen.complaints == []
    assert authenticate(x_api_key=seen.secret).key == ApiKey.objects.get()

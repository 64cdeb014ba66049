"""A response's page shows the conversation, whatever its content."""

import json
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from responses_api.admin.elements import deletion
from responses_api.admin.store import conversation
from responses_api.admin.store.bubbles import BubbleMaker
from responses_api.admin.store.conversation import read_history
from responses_api.models import Item, Project, Response
from tests.factories import make_response, start_response


def page_of(client: Client, row: Response) -> str:
    answer = client.get(f"/admin/responses_api/response/{row.pk}/change/")
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_response_is_shown_at_the_end_of_its_conversation(client: Client, project: Project) -> None:
    """Its history comes first, then its own request and answer, marked as such, with this request's instructions."""
    first = make_response("What is *Lisbon*?", "A **city**.", project=project, instructions="Old rules.")
    row = make_response(
        [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Where?"}],
        "In Portugal.",
        project=project,
        previous=first,
        instructions="New rules.",
        metadata={"ticket": "42"},
    )
    page = page_of(client, row)
    said = ["New rules.", "<em>Lisbon</em>", "<strong>city</strong>", "Be brief.", "Where?", "In Portugal."]
    assert [text for text in said if text in page] == said
    assert sorted(said, key=page.index) == said
    assert "Old rules." not in page
    assert page.count("bubble-answer") == page.count(">this response<") == 1
    assert page.index("this request") < page.index("Be brief.")
    assert f"/admin/responses_api/response/{first.pk}/change/" in page
    assert "1,234 tokens" in page
    assert "40.0 tokens a second" in page
    assert "<dd>42</dd>" in page
    assert f"/admin/responses_api/response/{row.pk}/change/" in page_of(client, first)


SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)><svg/onload=alert(3)>"
LINKS = "[a](javascript:alert(4)) [b](data:text/html,x) ![c](https://example.com/pixel.png) <https://example.com>"


def test_no_content_runs_or_loads_in_the_browser(client: Client, project: Project) -> None:
    """HTML, script links and images in messages, instructions, metadata and output are text on every page."""
    hostile = f"{SCRIPT}\n\n{LINKS}\n\n    {SCRIPT}\n\n```html\n{SCRIPT}\n```\n\n| a |\n|---|\n| {SCRIPT} |"
    row = make_response(hostile, hostile, project=project, instructions=hostile, metadata={SCRIPT[:60]: SCRIPT})
    item = Item.objects.order_by("-pk").first()
    assert item is not None
    addresses = (
        f"/admin/responses_api/response/{row.pk}/change/",
        f"/admin/responses_api/item/{item.pk}/change/",
        "/admin/responses_api/response/",
        "/admin/responses_api/item/",
        f"/admin/responses_api/response/{row.pk}/delete/",
        "/admin/",
    )
    for address in addresses:
        answer = client.get(address)
        page = answer.content.decode()
        assert "script-src 'self';" in answer.headers["Content-Security-Policy"]
        assert "<script>" not in page
        assert not re.search(r"<(svg/|svg )[^>]*onload|<img[^>]*(onerror|example)", page)
        assert not re.search(r"href=\"?(javascript|data):", page)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page_of(client, row)


def test_long_histories_show_their_end(client: Client, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last items are shown with the number of earlier ones, in as many queries as for a short history."""
    monkeypatch.setattr("responses_api.admin.store.response_page.SHOWN_ITEMS", 4)
    row = make_response("question 0", "answer 0", project=project)
    short = make_response("again", "yes", project=project, previous=row)
    for number in range(1, 6):
        row = make_response(f"question {number}", f"answer {number}", project=project, previous=row)
    page_of(client, short)
    with CaptureQueriesContext(connection) as few:
        page_of(client, short)
    with CaptureQueriesContext(connection) as many:
        page = page_of(client, row)
    assert len(few) == len(many) <= 16
    assert "8 earlier items" in page
    assert "question 4" in page
    assert "answer 3" not in page


def test_the_end_of_a_history_is_read_in_order(project: Project) -> None:
    """Two queries, however long it is."""
    first = make_response("a", "b", project=project)
    row = make_response("c", "d", project=project, previous=first)
    with CaptureQueriesContext(connection) as queries:
        history = read_history(row.turn_id, own_turn=True, limit=3)
    assert len(queries) == 2
    assert history.hidden == 1
    assert [(place.own, place.is_output) for place in history.places] == [(False, True), (True, False), (True, True)]
    assert read_history(None, own_turn=True).places == []


def test_huge_items_show_their_beginning(client: Client, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that is too long is cut, with a note of its size; the page stays small."""
    monkeypatch.setattr(conversation, "WHOLE", 100_000)
    row = make_response("In the beginning \U0001f600\n" + "x" * 300_000, "y" * 300_000, project=project)
    page = page_of(client, row)
    assert "In the beginning \U0001f600" in page
    assert re.search(r"Only the beginning is shown: this item has 300\.\d kB\.", page)
    assert len(page) < 250_000
    for item in Item.objects.all():
        assert client.get(f"/admin/responses_api/item/{item.pk}/change/").status_code == 200


@pytest.mark.parametrize(
    "payload",
    [
        "not json",
        "[]",
        "null",
        "{}",
        '{"type":"message","role":"user","content":null}',
        '{"type":"message","role":"user","content":[null,1,{"type":"input_text","text":7}]}',
        '{"type":"message","role":"nobody","content":[]}',
        '{"type":"message","role":["user"],"content":{"a":1}}',
        '{"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}',
        '{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"No."}]}',
        '{"type":"function_call","name":"look_up","call_id":"call_1","arguments":"{"}',
        '{"type":5}',
        '{"type":"message","role":"user","content":"' + "> " * 3000 + '"}',
        '{"type":"message","role":"user","content":"' + "[" * 5000 + '"}',
    ],
)
def test_odd_items_do_not_break_the_page(client: Client, project: Project, payload: str) -> None:
    """Stored data is shown, whatever its form."""
    row = make_response("hello", "there", project=project)
    Item.objects.filter(project=project).update(payload=payload)
    page_of(client, row)
    assert client.get("/admin/responses_api/response/").status_code == 200
    assert client.get("/admin/responses_api/item/").status_code == 200
    for item in Item.objects.all():
        assert client.get(f"/admin/responses_api/item/{item.pk}/change/").status_code == 200


@pytest.mark.parametrize("body", ["", "broken", "[]", '{"metadata":3,"instructions":[{"a":1}],"error":"x"}'])
def test_odd_bodies_do_not_break_the_page(client: Client, project: Project, body: str) -> None:
    """A response whose object can't be read still shows its conversation."""
    row = make_response("hello", "there", project=project)
    Response.objects.filter(pk=row.pk).update(body=body)
    assert "there" in page_of(client, row)


def test_a_running_response_shows_its_input(client: Client, project: Project) -> None:
    """And its history. It cannot be deleted yet."""
    first = make_response("before", "then", project=project)
    row = start_response("and now?", project=project, previous=first)
    page = page_of(client, row)
    assert page.index("then") < page.index("and now?")
    assert "in progress" in page
    assert client.get(f"/admin/responses_api/response/{row.pk}/delete/").status_code == 403
    listed = start_response(
        [{"role": "user", "content": [{"type": "input_text", "text": "as parts"}]}], project=project
    )
    assert "as parts" in page_of(client, listed)


def test_the_reason_of_a_partial_answer_is_shown(client: Client, project: Project) -> None:
    """The reason of an incomplete response, the error of a failed one."""
    row = make_response("hello", "th", project=project, status="incomplete")
    body = row.body_dict() | {"incomplete_details": {"reason": "max_output_tokens"}}
    Response.objects.filter(pk=row.pk).update(body=json.dumps(body))
    assert "max_output_tokens" in page_of(client, row)
    body["error"] = {"code": "server_error", "message": "The worker was lost."}
    Response.objects.filter(pk=row.pk).update(body=json.dumps(body))
    assert "server_error: The worker was lost." in page_of(client, row)


# --- deleting ---------------------------------------------------------------------------------------------------------


def test_deleting_a_response_deletes_items_that_only_it_uses(client: Client, project: Project) -> None:
    """As the API does: its own items are deleted; those in the history of a later response stay."""
    first = make_response("one", "two", project=project)
    second = make_response("three", "four", project=project, previous=first)
    answer = client.post(f"/admin/responses_api/response/{first.pk}/delete/", {"post": "yes"})
    assert answer.status_code == 302
    assert list(Response.objects.all()) == [second]
    assert Item.objects.count() == 4
    assert "two" in page_of(client, second)
    assert "(deleted)" in page_of(client, second)
    client.post(f"/admin/responses_api/response/{second.pk}/delete/", {"post": "yes"})
    assert not Item.objects.exists()


def test_many_responses_are_deleted_at_once(client: Client, project: Project) -> None:
    """After a confirmation. Running ones are left alone, and the page says so."""
    rows = [make_response(f"question {number}", "answer", project=project) for number in range(3)]
    running = start_response("still", project=project)
    chosen = {"action": "delete_selected", "_selected_action": [row.pk for row in (*rows, running)]}
    asked = client.post("/admin/responses_api/response/", chosen).content.decode()
    assert "1 response left alone" in asked
    assert rows[0].public_id in asked
    assert running.public_id not in asked
    assert Response.objects.count() == 4
    done = client.post("/admin/responses_api/response/", {**chosen, "post": "yes"}, follow=True).content.decode()
    assert "Successfully deleted 3 responses" in done
    assert list(Response.objects.all()) == [running]
    assert not Item.objects.exists()


def test_too_many_at_once_are_refused(client: Client, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rather than run for minutes, or fail on the number of form fields."""
    monkeypatch.setattr(deletion, "AT_ONCE", 1)
    rows = [make_response("question", "answer", project=project) for _ in range(2)]
    chosen = {"action": "delete_selected", "_selected_action": [row.pk for row in rows]}
    assert "at most 1 at once" in client.post("/admin/responses_api/response/", chosen, follow=True).content.decode()
    assert Response.objects.count() == 2


def test_tools_and_reasoning_are_shown_with_their_content() -> None:
    """Names with their namespaces, arguments unchanged, outputs, inputs and reasoning as text."""
    call = {"type": "function_call", "name": "find", "namespace": "crm", "arguments": '{"a":1}'}
    said = [{"type": "input_text", "text": "*out*"}]
    thought = {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "**Hm.**"}]}
    shown: list[tuple[dict[str, Any], str, str]] = [
        (call, "tool call: crm::find", "&quot;a&quot;: 1"),
        ({"type": "function_call", "name": "cut", "arguments": '{"b'}, "tool call: cut", "{&quot;b"),
        ({"type": "custom_tool_call", "name": "say", "input": "raw <b>"}, "tool call: say", "raw &lt;b&gt;"),
        ({"type": "function_call_output", "output": said}, "tool output", "<em>out</em>"),
        (thought, "reasoning", "<strong>Hm.</strong>"),
        ({"type": "reasoning", "encrypted_content": "x"}, "reasoning", "encrypted"),
    ]
    for item, label, text in shown:
        bubble = BubbleMaker().from_item(item)
        assert bubble.label == label
        assert text in "".join(bubble.parts)

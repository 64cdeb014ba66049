"""Lists take a fixed number of queries."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from responses_api.admin.elements import paging
from responses_api.models import Project, User
from responses_api.selectors.models import forget_live_workers
from responses_api.services.accounts.create_key import create_key, revoke_key
from tests.factories import make_project, make_response, make_worker

LISTS = ("apikey", "item", "process", "project", "response", "servedmodel", "usagerecord", "user")
FEW, MANY = 5, 50
MOST_QUERIES = 12


def fill(start: int, stop: int) -> None:
    """Create rows of every kind, each with its own project and key."""
    for number in range(start, stop):
        project = make_project(f"project {number}")
        key, _ = create_key(project=project, name=f"key {number}", owner=User.objects.first())
        make_response(f"question {number}", "answer", project=project, key=key)
        make_worker(f"worker_{number}", f"model {number}")
        User.objects.create(username=f"user {number}")


def queries_of(client: Client, address: str) -> int:
    forget_live_workers()
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).status_code == 200
    return len(queries)


def test_no_list_makes_a_query_per_row(client: Client) -> None:
    """Each list with 50 rows makes exactly the queries that it makes with 5."""
    fill(0, FEW)
    addresses = [f"/admin/responses_api/{name}/" for name in LISTS]
    for address in addresses:
        client.get(address)
    few = {address: queries_of(client, address) for address in addresses}
    fill(FEW, MANY)
    many = {address: queries_of(client, address) for address in addresses}
    assert few == many
    assert max(many.values()) <= MOST_QUERIES, many


def test_the_overview_makes_no_query_per_row(
    client: Client, django_assert_max_num_queries: Callable[..., CaptureQueriesContext]
) -> None:
    """The figures of the first page take a fixed number of queries."""
    fill(0, 12)
    client.get("/admin/")
    forget_live_workers()
    with django_assert_max_num_queries(MOST_QUERIES):
        page = client.get("/admin/").content.decode()
    assert "Responses today" in page
    assert "<strong>12</strong>" in page
    assert "question 11" in page


@pytest.mark.parametrize("name", [*LISTS, "group"])
def test_lists_can_be_searched_and_sorted(client: Client, project: Project, name: str) -> None:
    """Every list accepts any search text, and every order that its columns offer."""
    make_response("hello", "there", project=project)
    make_worker()
    group = "auth/group" if name == "group" else f"responses_api/{name}"
    for query in (
        "q=hello",
        "q=resp_1",
        "q=msg_%00'\"",
        "q=%F0%9F%92%A1+x",
        "o=1",
        "o=-1",
        "o=3.-2",
        "p=99999",
        "all=",
    ):
        assert client.get(f"/admin/{group}/?{query}").status_code in (200, 302), query


def test_large_lists_are_not_counted_to_the_end(
    client: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the limit the list says "more than", and still shows its pages."""
    monkeypatch.setattr(paging, "COUNTED", 3)
    for number in range(5):
        make_response(f"question {number}", "answer", project=project)
    page = client.get("/admin/responses_api/response/").content.decode()
    assert "more than 3 responses" in page
    assert "question 4" in page


def test_lists_can_be_filtered(client: Client, project: Project) -> None:
    """By status, model, project, type, state and liveness."""
    make_worker()
    make_response("whole", "yes", project=project)
    make_response("cut", "no", project=make_project("other"), status="incomplete")
    key, _ = create_key(project=project, name="gone")
    revoke_key(key=key)
    create_key(project=project, name="here")

    def shown(address: str) -> str:
        answer = client.get(f"/admin/responses_api/{address}")
        assert answer.status_code == 200
        return answer.content.decode()

    assert ">cut<" not in shown("response/?status__exact=completed")
    assert ">whole<" not in shown(f"response/?project__id__exact={make_project('other').pk}")
    assert "0 responses" in shown("response/?model=unknown")
    assert "2 responses" in shown("response/?model=scripted")
    assert "4 items" in shown("item/?type=message")
    assert "0 items" in shown("item/?type=reasoning")
    assert ">here<" not in shown("apikey/?state=revoked")
    assert ">gone<" not in shown("apikey/?state=active")
    assert "0 API keys" in shown("apikey/?state=expired")
    assert "1 process" in shown("process/?state=live")
    assert "0 processes" in shown("process/?state=silent")


def test_items_are_found_by_their_words(client: Client, project: Project) -> None:
    """All words must occur, in any order."""
    make_response("the quick brown fox", "über alles", project=project)
    assert "1 item" in client.get("/admin/responses_api/item/?q=fox+quick").content.decode()
    assert "1 item" in client.get("/admin/responses_api/item/?q=über").content.decode()
    assert "0 items" in client.get("/admin/responses_api/item/?q=fox+slow").content.decode()


def test_rows_that_the_server_writes_cannot_be_edited(client: Client, project: Project) -> None:
    """Responses, items, usage, processes and models have no form to add or change them."""
    row = make_response("hello", "there", project=project)
    make_worker()
    for name in ("response", "item", "usagerecord", "process", "servedmodel"):
        assert client.get(f"/admin/responses_api/{name}/add/").status_code == 403
    assert client.post(f"/admin/responses_api/response/{row.pk}/change/", {"model": "x"}).status_code == 403
    assert client.post("/admin/responses_api/item/1/delete/", {"post": "yes"}).status_code in (302, 403)
    page = client.get("/admin/responses_api/process/worker_test/change/").content.decode()
    assert 'name="_save"' not in page


@pytest.mark.parametrize("name", ["response", "item", "apikey", "project", "usagerecord"])
@pytest.mark.parametrize("key", ["999999", "0", "x", "99999999999999999999999999"])
def test_unknown_objects_redirect_to_the_overview(client: Client, name: str, key: str) -> None:
    """An unknown or impossible id is not a server error."""
    assert client.get(f"/admin/responses_api/{name}/{key}/change/").status_code == 302


def test_staff_without_permissions_see_nothing(db: None, project: Project) -> None:
    """Without the permission to view responses there are no figures, no texts, and no pages."""
    row = make_response("secret question", "secret answer", project=project)
    client = Client()
    client.force_login(User.objects.create_user("bob", password="x", is_staff=True))
    page = client.get("/admin/").content.decode()
    assert "Responses today" not in page
    assert "secret" not in page
    for address in ("", f"{row.pk}/change/", f"{row.pk}/delete/"):
        answer = client.get(f"/admin/responses_api/response/{address}")
        assert answer.status_code == 403
        assert b"secret" not in answer.content


def test_pages_ask_for_a_sign_in(db: None) -> None:
    """Every page of the admin redirects to the sign-in form; the URL without its slash works too."""
    client = Client()
    assert client.get("/admin").headers["Location"] == "/admin/"
    answer = client.get("/admin/responses_api/response/")
    assert answer.headers["Location"].startswith("/admin/login/")
    assert "mlx-responses" in client.get("/admin/login/").content.decode()

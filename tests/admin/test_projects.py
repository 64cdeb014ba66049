"""Projects and users in the admin."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from responses_api import bus
from responses_api.bus.messages import ForgetScopes
from responses_api.models import ApiKey, Item, Project, Response, Turn, TurnItem, UsageRecord, User
from responses_api.services.accounts import forget_owner
from responses_api.services.accounts.create_key import create_key
from responses_api.services.accounts.delete_project import delete_project
from tests.factories import answer, make_project, make_response, start_response

KINDS = (ApiKey, Item, Response, Turn, TurnItem, UsageRecord)


def test_projects_are_created_and_renamed(client: Client) -> None:
    """Names are unique."""
    client.post("/admin/responses_api/project/add/", {"name": "web", "store_default": "unknown"})
    project = Project.objects.get()
    assert project.public_id.startswith("proj_")
    sent = {"name": "shop", "store_default": "false"}
    client.post(f"/admin/responses_api/project/{project.pk}/change/", sent)
    project.refresh_from_db()
    assert (project.name, project.store_default) == ("shop", False)
    assert "already exists" in client.post("/admin/responses_api/project/add/", sent).content.decode()


def fill(project: Project, turns: int) -> None:
    create_key(project=project, name="laptop")
    row = make_response("question", "answer", project=project)
    for _ in range(turns - 1):
        row = make_response("question", "answer", project=project, previous=row)


def test_deleting_a_project_asks_for_confirmation_with_numbers(client: Client) -> None:
    """It says how much will be deleted and what that means. Then all of it is deleted, and nothing else."""
    deleted, other = make_project("deleted"), make_project("other")
    fill(deleted, 3)
    fill(other, 1)
    start_response("running", project=deleted)
    asked = client.get(f"/admin/responses_api/project/{deleted.pk}/delete/").content.decode()
    for text in ("API keys: 1", "Responses: 4", "Items: 6", "Usage records: 3", "brought back"):
        assert text in asked
    assert client.post(f"/admin/responses_api/project/{deleted.pk}/delete/", {"post": "yes"}).status_code == 302
    assert list(Project.objects.all()) == [other]
    assert [kind._default_manager.count() for kind in KINDS] == [1, 2, 1, 1, 2, 1]


def test_projects_are_deleted_from_the_list(client: Client) -> None:
    """Several at once, with a warning if no key would be left."""
    projects = [make_project(name) for name in "ab"]
    for project in projects:
        fill(project, 1)
    chosen = {"action": "delete_selected", "_selected_action": [project.pk for project in projects]}
    assert "No key would be left" in client.post("/admin/responses_api/project/", chosen).content.decode()
    client.post("/admin/responses_api/project/", {**chosen, "post": "yes"})
    assert not any(kind._default_manager.exists() for kind in (*KINDS, Project))


def test_a_project_is_deleted_in_a_fixed_number_of_queries(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long its conversations are."""
    monkeypatch.setattr(forget_owner, "get_live_workers", lambda: SimpleNamespace(workers=[]))
    small = make_project("small")
    fill(small, 1)
    fill(project, 20)
    with CaptureQueriesContext(connection) as few:
        delete_project(project=small)
    with CaptureQueriesContext(connection) as many:
        delete_project(project=project)
    assert len(few) == len(many)


def test_workers_forget_a_deleted_project(project: Project, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """Its cached prompts and remembered reasoning, and those of its keys with isolation by key."""
    published: list[tuple[str, Any]] = []
    key = create_key(project=project, name="laptop")[0]
    monkeypatch.setattr(bus, "publish", lambda group, message: published.append((group, message)))
    monkeypatch.setattr(
        forget_owner, "get_live_workers", lambda: SimpleNamespace(workers=[("w1", ["m"]), ("w2", ["m"])])
    )
    settings.RESPONSES_ISOLATION = "key"
    delete_project(project=project)
    message = ForgetScopes(scopes=(f"key-{key.pk}", f"project-{project.pk}"))
    assert published == [(bus.process_group(worker), message) for worker in ("w1", "w2")]


@pytest.mark.django_db(transaction=True)
def test_a_job_of_a_deleted_project_writes_nothing() -> None:
    """Its worker finds that it no longer owns the row."""
    project = make_project()
    row = start_response("running", project=project)
    delete_project(project=project)
    with pytest.raises(AssertionError):
        answer(row, "too late")
    assert not any(kind._default_manager.exists() for kind in KINDS)


def test_administrators_create_users(
    client: Client, administrator: User, django_assert_max_num_queries: Callable[..., CaptureQueriesContext]
) -> None:
    """The form for new users works with our own user model."""
    sent = {
        "username": "bob",
        "password1": "correct horse 8",
        "password2": "correct horse 8",
        "usable_password": "true",
    }
    assert client.post("/admin/responses_api/user/add/", sent).status_code == 302
    bob = User.objects.get(username="bob")
    assert bob.check_password("correct horse 8")
    with django_assert_max_num_queries(12):
        assert client.get(f"/admin/responses_api/user/{bob.pk}/change/").status_code == 200
    assert client.get("/admin/auth/group/add/").status_code == 200

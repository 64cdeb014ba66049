"""Keys in the admin: shown once, renamed, revoked, then deleted."""

import hashlib
import re
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from responses_api.errors import AuthenticationFailed
from responses_api.models import ApiKey, Project, User
from responses_api.services.accounts.authenticate import authenticate
from responses_api.services.accounts.create_key import create_key, revoke_key

ADD = "/admin/responses_api/apikey/add/"
LIST = "/admin/responses_api/apikey/"
SECRET = re.compile(r"sk-mlx-[\w-]{43}")


def form(project: Project, **values: str) -> dict[str, str]:
    return {"name": "laptop", "project": str(project.pk), "expires_at_0": "", "expires_at_1": "", **values}


def test_the_form_has_defaults(client: Client, administrator: User, project: Project) -> None:
    """The owner is the signed-in user; the only project is chosen."""
    page = client.get(ADD).content.decode()
    assert f'<option value="{administrator.pk}" selected>' in page
    assert f'<option value="{project.pk}" selected>' in page


def test_a_secret_is_shown_once_and_stored_nowhere(client: Client, administrator: User, project: Project) -> None:
    """Not in a cookie, a URL, the session, the action log or the key's page. It gives access to the API."""
    answer = client.post(ADD, form(project, owner=str(administrator.pk)))
    page = answer.content.decode()
    secrets = set(SECRET.findall(page))
    assert answer.status_code == 200
    assert "no-store" in answer.headers["Cache-Control"]
    assert len(secrets) == 1
    (secret,) = secrets
    assert f"Authorization: Bearer {secret}" in page.replace("&#x27;", "'")
    key = ApiKey.objects.get()
    assert (key.name, key.owner, key.project) == ("laptop", administrator, project)
    assert key.digest == hashlib.sha256(secret.encode()).hexdigest()
    assert authenticate(authorization=f"Bearer {secret}").key == key
    kept = [
        *(cookie.value for cookie in client.cookies.values()),
        *(str(session.get_decoded()) for session in Session.objects.all()),
        *(f"{entry.object_repr} {entry.change_message}" for entry in LogEntry.objects.all()),
        client.get(LIST).content.decode(),
        client.get(f"{LIST}{key.pk}/change/").content.decode(),
    ]
    assert not any(secret in text for text in kept)


def test_a_key_expires_as_its_form_says(client: Client, project: Project) -> None:
    """An expiry in the past is refused with the remedy."""
    tomorrow = timezone.now() + timedelta(days=1)
    past = form(project, expires_at_0="2020-01-01", expires_at_1="00:00")
    assert "revoke it" in client.post(ADD, past).content.decode()
    assert not ApiKey.objects.exists()
    client.post(ADD, form(project, expires_at_0=f"{tomorrow:%Y-%m-%d}", expires_at_1="12:00"))
    expires_at = ApiKey.objects.get().expires_at
    assert expires_at is not None
    assert expires_at.date() == tomorrow.date()


def test_only_name_and_expiry_can_be_changed(client: Client, project: Project) -> None:
    """Other fields of a form are ignored."""
    other = Project.objects.create(name="other")
    key, _ = create_key(project=project, name="laptop")
    address = f"{LIST}{key.pk}/change/"
    sent = {"name": "desk", "expires_at_0": "", "expires_at_1": "", "project": str(other.pk), "digest": "0" * 64}
    assert client.post(address, sent).status_code == 302
    changed = ApiKey.objects.get()
    assert (changed.name, changed.project, changed.digest) == ("desk", project, key.digest)


def test_a_key_is_revoked_by_its_button(client: Client, project: Project) -> None:
    """After a confirmation. The API refuses it from then on."""
    key, secret = create_key(project=project, name="laptop")
    create_key(project=project, name="another")
    address = f"{LIST}{key.pk}/revoke/"
    assert address in client.get(f"{LIST}{key.pk}/change/").content.decode()
    assert client.get(address).status_code == 200
    assert authenticate(x_api_key=secret).key == key
    page = client.post(address, follow=True).content.decode()
    assert "is revoked" in page
    with pytest.raises(AuthenticationFailed):
        authenticate(x_api_key=secret)
    assert address not in page
    assert LogEntry.objects.filter(change_message="Revoked.").count() == 1
    assert client.get(f"{LIST}999/revoke/").status_code == 404


def test_keys_are_revoked_from_the_list(client: Client, project: Project) -> None:
    """Keys that were revoked before keep their time."""
    keys = [create_key(project=project, name=name)[0] for name in "ab"]
    revoke_key(key=keys[0])
    before = ApiKey.objects.get(pk=keys[0].pk).revoked_at
    chosen = {"action": "revoke_selected", "_selected_action": [key.pk for key in keys]}
    assert "Revoked 1 API key." in client.post(LIST, chosen, follow=True).content.decode()
    assert ApiKey.objects.get(pk=keys[0].pk).revoked_at == before
    assert not ApiKey.objects.filter(revoked_at=None).exists()


def test_only_revoked_keys_can_be_deleted(client: Client, project: Project) -> None:
    """One by one and from the list. Deleting the last one warns that no key will be needed."""
    gone, _ = create_key(project=project, name="gone")
    here, _ = create_key(project=project, name="here")
    revoke_key(key=gone)
    assert client.get(f"{LIST}{here.pk}/delete/").status_code == 403
    assert "No key would be left" not in client.get(f"{LIST}{gone.pk}/delete/").content.decode()
    chosen = {"action": "delete_selected", "_selected_action": [gone.pk, here.pk], "post": "yes"}
    assert "1 API key left alone" in client.post(LIST, chosen, follow=True).content.decode()
    assert list(ApiKey.objects.all()) == [here]
    revoke_key(key=here)
    assert "No key would be left" in client.get(f"{LIST}{here.pk}/delete/").content.decode()
    client.post(f"{LIST}{here.pk}/delete/", {"post": "yes"})
    assert not ApiKey.objects.exists()


def test_revoking_needs_the_permission_to_change_keys(db: None, project: Project) -> None:
    """Signing in is not enough."""
    key, _ = create_key(project=project, name="laptop")
    client = Client()
    client.force_login(User.objects.create_user("bob", password="x", is_staff=True))
    assert client.post(f"{LIST}{key.pk}/revoke/").status_code == 403
    assert ApiKey.objects.get().revoked_at is None

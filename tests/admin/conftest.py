"""An administrator who is signed in, and no memory of other tests' workers."""

from collections.abc import Iterator

import pytest
from django.test import Client

from responses_api.models import Project, User
from responses_api.selectors.models import forget_fleet
from responses_api.services.accounts.create_administrator import create_administrator
from tests.admin.rows import make_project

PASSWORD = "correct horse 9"


@pytest.fixture(autouse=True)
def fresh_fleet() -> Iterator[None]:
    forget_fleet()
    yield
    forget_fleet()


@pytest.fixture
def administrator(db: None) -> User:
    return create_administrator(username="ada", password=PASSWORD)


@pytest.fixture
def client(administrator: User) -> Client:
    """A browser in which the administrator is signed in."""
    client = Client()
    client.force_login(administrator)
    return client


@pytest.fixture
def project(db: None) -> Project:
    return make_project()

"""A signed-in administrator."""

import pytest
from django.test import Client

from responses_api.models import Project, User
from responses_api.services.accounts.create_administrator import create_administrator
from tests.factories import make_project

PASSWORD = "correct horse 9"


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

"""Servers that tests talk to through the doors users take, shared by all tests that leave them as they are."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from .launch import SHAPES, Launch
from .server import LiveServer


@pytest.fixture(scope="session", params=SHAPES)
def server(request: pytest.FixtureRequest) -> LiveServer:
    """One per shape. A team has one key, the embedded one is open."""
    shared: LiveServer = request.getfixturevalue(f"{request.param}_server")
    return shared


@pytest.fixture(scope="session", params=SHAPES)
def keyed_server(request: pytest.FixtureRequest) -> LiveServer:
    """Like ``server``, but keys may be made on it, and requests of tests carry none that they don't name."""
    name = "closed_server" if request.param == "embedded" else "team_server"
    return replace(request.getfixturevalue(name), key="")


# Each is a fixture of its own, so that it outlives the turns of a parameter.


@pytest.fixture(scope="session")
def embedded_server(launch: Launch) -> Iterator[LiveServer]:
    with launch("embedded") as server:
        yield server


@pytest.fixture(scope="session")
def closed_server(launch: Launch) -> Iterator[LiveServer]:
    """An embedded one that has a key: it needs one from then on."""
    with launch("embedded") as server:
        yield server


@pytest.fixture(scope="session")
def team_server(launch: Launch) -> Iterator[LiveServer]:
    with launch("team") as server:
        yield server

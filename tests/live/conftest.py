"""Running servers, shared by all tests that leave their settings and keys unchanged."""

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
    """Like ``server``, but tests may make keys, and requests have no key unless the test gives one."""
    name = "closed_server" if request.param == "embedded" else "team_server"
    return replace(request.getfixturevalue(name), key="")


# Each is a fixture of its own, so that it outlives the turns of a parameter. Coverage measures these servers and no
# others: measured processes take half a second longer to start, and servers for a few tests run hardly any other lines.


@pytest.fixture(scope="session")
def embedded_server(launch: Launch) -> Iterator[LiveServer]:
    with launch("embedded", measured=True) as server:
        yield server


@pytest.fixture(scope="session")
def closed_server(launch: Launch) -> Iterator[LiveServer]:
    """An embedded server with a key, so that requests need one."""
    with launch("embedded", measured=True) as server:
        yield server


@pytest.fixture(scope="session")
def team_server(launch: Launch) -> Iterator[LiveServer]:
    with launch("team", measured=True) as server:
        yield server

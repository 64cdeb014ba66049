"""A server with the scripted engine, one with the default model, and the clients that run against them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.launch import Launch
from tests.live.server import LiveServer

from .environment import Clients, NotInstalledError, install


@pytest.fixture(scope="package")
def scripted(launch: Launch) -> Iterator[LiveServer]:
    """For tests that depend on the answer's text."""
    with launch("embedded") as server:
        yield server


@pytest.fixture(scope="package")
def real(real_server: LiveServer) -> LiveServer:
    """For tests that must pass whatever a model says."""
    return real_server


@pytest.fixture(scope="package", params=["scripted", pytest.param("real", marks=pytest.mark.real_model)])
def server(request: pytest.FixtureRequest) -> LiveServer:
    """Each of the two servers."""
    found: LiveServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def clients(request: pytest.FixtureRequest) -> Clients:
    """The clients, installed once and reused by later runs."""
    try:
        return install(Path(request.config.cache.mkdir("responses-clients")) / "environment")
    except NotInstalledError as error:
        pytest.skip(f"needs the client programs of requirements/clients.txt ({error})")

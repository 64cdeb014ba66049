"""One server with the scripted engine and one with the default model, and the clients that are run against them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from inference import ModelEntry
from tests.live.conftest import started
from tests.live.server import LiveServer, embedded

from .environment import Clients, NotInstalledError, install


@pytest.fixture(scope="package")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """For what depends on words."""
    yield from started(embedded(tmp_path_factory.mktemp("clients")))


@pytest.fixture(scope="package")
def real(default_model: ModelEntry, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """For what must work with whatever a model says."""
    data_dir = tmp_path_factory.mktemp("clients-real")
    (data_dir / "models").symlink_to(default_model.path.parent)
    yield from started(embedded(data_dir, RESPONSES_ENGINE="mlx"))


@pytest.fixture(scope="package", params=["scripted", pytest.param("real", marks=pytest.mark.real_model)])
def server(request: pytest.FixtureRequest) -> LiveServer:
    """Each of the two."""
    found: LiveServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def clients(request: pytest.FixtureRequest) -> Clients:
    """Installed once, and kept for later runs."""
    try:
        return install(Path(request.config.cache.mkdir("responses-clients")) / "environment")
    except NotInstalledError as error:
        pytest.skip(f"needs the client programs of requirements/clients.txt ({error})")

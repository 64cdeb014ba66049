"""A repository of the hub becomes a model; a broken download resumes where it stopped."""

from pathlib import Path

import pytest

from inference import ModelError, Registry, pull_hub
from tests.inference.hub_stand_in import COMMIT, Hub
from tests.inference.tiny import write_model

REPO = "mlx-community/Tiny-4bit"


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    files = write_model(tmp_path / "repository")
    (files / "README.md").write_text("hello")
    (files / "modeling_tiny.py").write_text("raise SystemExit")
    return Hub(REPO, files)


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "data")


def test_a_repository_becomes_a_model_with_its_id_as_alias(hub: Hub, registry: Registry) -> None:
    stages: list[tuple[str, float]] = []
    with hub.serving():
        entry = pull_hub(registry, REPO, endpoint=hub.endpoint, progress=lambda *stage: stages.append(stage))
    assert entry == registry.get_model("Tiny-4bit") == registry.get_model(REPO)
    assert entry.source == f"hub:{REPO}@{COMMIT}"
    files = sorted(path.name for path in entry.path.iterdir())
    model = ["config.json", "model.safetensors", "responses-model.json", "tokenizer.json", "tokenizer_config.json"]
    assert files == model, "neither code nor prose, nor the downloader's own files"
    assert (f"Downloading {REPO}", 1.0) in stages
    assert list((registry.models_dir / ".partial").iterdir()) == []


def test_a_broken_download_is_not_listed_and_resumes(
    hub: Hub, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 100_000)
    weights = hub.files / "model.safetensors"
    weights.write_bytes(weights.read_bytes() + bytes(3_000_000))
    hub.breaks_after = 1_000_000
    with hub.serving():
        with pytest.raises(ModelError, match="repeat the command to resume it"):
            pull_hub(registry, REPO, endpoint=hub.endpoint)
        assert registry.list_models() == []
        hub.breaks_after, hub.broken, hub.requests = None, False, []
        pull_hub(registry, REPO, endpoint=hub.endpoint)
    fetched = {
        path.rpartition("/")[2]: part for method, path, part in hub.requests if method == "GET" and "/resolve/" in path
    }
    assert fetched["model.safetensors"] == "bytes=1000000-"
    assert (registry.get_model(REPO).path / "model.safetensors").read_bytes() == weights.read_bytes()


def test_refusals_are_one_sentence_and_leave_nothing(hub: Hub, registry: Registry) -> None:
    with hub.serving():
        with pytest.raises(
            ModelError, match=r"The hub has no repository no/where, or it is private and HF_TOKEN is missing\."
        ):
            pull_hub(registry, "no/where", endpoint=hub.endpoint)
        with pytest.raises(ModelError, match="one looks like owner/name"):
            pull_hub(registry, "a/b/c", endpoint=hub.endpoint)
        (hub.files / "model.safetensors").rename(hub.files / "pytorch_model.bin")
        with pytest.raises(ModelError, match="has no safetensors weights"):
            pull_hub(registry, REPO, endpoint=hub.endpoint)
        (hub.files / "config.json").rename(hub.files / "tiny.gguf")
        with pytest.raises(ModelError, match="holds GGUF files only"):
            pull_hub(registry, REPO, endpoint=hub.endpoint)
    assert registry.list_models() == []
    assert not (registry.models_dir / ".partial").exists()


def test_a_complete_download_that_is_not_a_model_is_deleted(hub: Hub, registry: Registry) -> None:
    (hub.files / "tokenizer_config.json").write_text("{}")
    with hub.serving(), pytest.raises(ModelError, match="no chat template"):
        pull_hub(registry, REPO, endpoint=hub.endpoint)
    assert list((registry.models_dir / ".partial").iterdir()) == []

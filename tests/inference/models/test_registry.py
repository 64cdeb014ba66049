"""The registry lists complete models only, and its writes are atomic."""

from pathlib import Path

import pytest

from inference import ModelError, Registry, add_directory
from inference.models.registry import MANIFEST
from tests.inference.tiny import write_model


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "data")


def added(registry: Registry, tmp_path: Path, name: str = "tiny") -> None:
    add_directory(registry, write_model(tmp_path / "source"), name=name)


def test_an_added_model_is_listed_with_the_facts_of_its_files(registry: Registry, tmp_path: Path) -> None:
    assert registry.list_models() == []
    source = write_model(tmp_path / "source", quantization={"bits": 4, "group_size": 64})
    (source / "generation_config.json").write_text('{"temperature": 0.6, "top_p": 0.95}')
    entry = add_directory(registry, source, name="tiny")
    assert registry.list_models() == [entry] == [registry.get_model("tiny")]
    assert (entry.context_length, entry.vocab_size, entry.weights) == (512, 300, "4bit")
    assert (entry.temperature, entry.top_p) == (0.6, 0.95)
    assert entry.digest.startswith("sha256:")
    assert entry.as_dict()["path"] == str(entry.path)


def test_it_outlives_its_source(registry: Registry, tmp_path: Path) -> None:
    added(registry, tmp_path)
    for file in (tmp_path / "source").iterdir():
        file.unlink()
    assert (registry.get_model("tiny").path / "model.safetensors").stat().st_size > 0


def test_the_digest_follows_weights_tokenizer_and_template(registry: Registry, tmp_path: Path) -> None:
    source = write_model(tmp_path / "source")
    digests = {add_directory(registry, source, name="one").digest, add_directory(registry, source, name="two").digest}
    assert len(digests) == 1
    other = write_model(tmp_path / "other")
    (other / "tokenizer_config.json").write_text('{"chat_template": "{{ other }}"}')
    assert add_directory(registry, other, name="three").digest not in digests


def test_aliases_lead_to_a_model_and_move(registry: Registry, tmp_path: Path) -> None:
    added(registry, tmp_path, "one")
    added(registry, tmp_path, "two")
    assert registry.add_alias("gpt-4o", "one").aliases == ("gpt-4o",)
    assert registry.get_model("gpt-4o").name == "one"
    registry.add_alias("gpt-4o", "two")
    assert registry.get_model("gpt-4o").name == "two"
    registry.add_alias("owner/name:latest", "gpt-4o")
    assert registry.get_model("two").aliases == ("gpt-4o", "owner/name:latest")
    registry.remove_alias("gpt-4o")
    with pytest.raises(ModelError, match="no model 'gpt-4o' on this machine; there are: one, two"):
        registry.get_model("gpt-4o")
    with pytest.raises(ModelError, match="no alias"):
        registry.remove_alias("gpt-4o")


def test_dangerous_names_are_refused(registry: Registry, tmp_path: Path) -> None:
    added(registry, tmp_path, "one")
    for name in ("../x", ".hidden", "a/b", "aliases json"):
        with pytest.raises(ModelError):
            added(registry, tmp_path, name)
        with pytest.raises(ModelError):
            registry.get_model(name)
    with pytest.raises(ModelError, match="is the name of a model"):
        registry.add_alias("one", "one")
    with pytest.raises(ModelError, match="can't be an alias"):
        registry.add_alias("../x", "one")
    with pytest.raises(ModelError, match="already"):
        added(registry, tmp_path, "one")
    registry.add_alias("nick", "one")
    with pytest.raises(ModelError, match="is an alias already"):
        added(registry, tmp_path, "nick")


def test_a_removed_model_is_removed_with_its_aliases(registry: Registry, tmp_path: Path) -> None:
    added(registry, tmp_path)
    registry.add_alias("nick", "tiny")
    path = registry.remove_model("nick").path
    assert not path.exists()
    assert registry.list_models() == []
    added(registry, tmp_path)
    assert registry.get_model("tiny").aliases == ()


def test_a_model_without_a_valid_manifest_is_not_listed(registry: Registry, tmp_path: Path) -> None:
    added(registry, tmp_path)
    write_model(registry.models_dir / "half")
    write_model(registry.models_dir / "bad")
    (registry.models_dir / "bad" / MANIFEST).write_text('{"name": ')
    assert [entry.name for entry in registry.list_models()] == ["tiny"]


def test_a_failed_addition_leaves_nothing(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(directory: Path) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("inference.models.downloads.digest_directory", interrupted)
    with pytest.raises(KeyboardInterrupt):
        added(registry, tmp_path)
    assert registry.list_models() == []
    assert list((registry.models_dir / ".partial").iterdir()) == []

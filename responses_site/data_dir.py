"""The data directory, and the secret key that an embedded server creates."""

import fcntl
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from responses_site.env import SettingError

OWNER_ONLY = 0o077
"""The process's umask: its files contain conversations, sessions and secrets."""


def make_data_dir(path: Path) -> None:
    """Create the directory of the database, secrets and models, for its owner only, or restrict an existing one to its
    owner. Raises `SettingError` when the directory can't be written to or can't be restricted."""
    os.umask(OWNER_ONLY)
    try:
        path.mkdir(parents=True, exist_ok=True)
        reason = "" if os.access(path, os.W_OK | os.X_OK) else "Permission denied"
    except OSError as error:
        reason = error.strerror or "it can't be created"
    if reason:
        raise SettingError(f"RESPONSES_DATA_DIR must be a directory that the server can write to; {path}: {reason}.")
    try:
        close_to_others(path)
        for file in path.iterdir():
            if file.is_file() and not file.is_symlink():
                close_to_others(file)
    except OSError as error:
        raise SettingError(
            f"RESPONSES_DATA_DIR can be read by other users, and this one may not change that; {path}: "
            f"{error.strerror}. As its owner run: chmod -R go= {path}"
        ) from None


def close_to_others(path: Path) -> None:
    """Restrict a file or directory to its owner."""
    with suppress(FileNotFoundError):  # SQLite may remove some of its files meanwhile
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & OWNER_ONLY:
            path.chmod(mode & ~OWNER_ONLY)


@contextmanager
def only_server(data_dir: Path) -> Iterator[None]:
    """Lock the data directory for this server, until the block or the process ends.

    Raises `SettingError` when another embedded server runs on it: one would claim requests whose readers are connected
    to the other.
    """
    with (data_dir / "server.lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise SettingError(
                f"RESPONSES_DATA_DIR is in use: process {file.read().strip() or '?'} serves on {data_dir}. Stop it, or "
                "give this server a directory of its own (and a PORT)."
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def load_or_create_secret_key(data_dir: Path) -> str:
    """The key in `<data_dir>/secret.key`, created on first use, readable by its owner only.

    Processes that start at the same time agree on one key: it is written to a temporary file, then linked, and the
    first link wins. Raises `SettingError` when the file can't be used.
    """
    path = data_dir / "secret.key"
    try:
        if not path.exists():
            _create(path)
        key = path.read_text().strip()
    except OSError as error:
        raise SettingError(f"RESPONSES_DATA_DIR has a key that can't be used; {path}: {error.strerror}.") from None
    if len(key) < 50:
        raise SettingError(
            f"{path} contains no key; remove it, so that a new one is created, or set RESPONSES_SECRET_KEY."
        )
    return key


def _create(path: Path) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".secret-")  # mode 0600
    try:
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_urlsafe(64) + "\n")
        try:
            os.link(name, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            if not path.exists():
                Path(name).rename(path)
    finally:
        Path(name).unlink(missing_ok=True)

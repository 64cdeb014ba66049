"""Files that nobody can read or alter without the key: a header, then parts whose sizes the header tells.

A file has a key of its own, derived with a random salt. Header and parts are sealed by AES-256-GCM with their number as
the nonce, so that none can be exchanged or left out. A file is written under a temporary name and renamed when it is
whole; one that was torn nevertheless does not open.
"""

import contextlib
import hashlib
import hmac
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MAGIC = b"mlxrpc1\n"
SALT_BYTES = 32
TAG_BYTES = 16
PART_BYTES = 4 << 20
"""Most bytes that are sealed at once."""
MOST_HEADER_BYTES = 64 << 20
TEMPORARY = ".tmp"
_START = struct.Struct(f"<{len(MAGIC)}s{SALT_BYTES}sQ")


class NotReadable(Exception):
    """A file is torn, altered, or sealed with another key."""


class Keys:
    """Derives from a secret what is needed to seal files, and to name them without telling what is in them."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def name(self, *parts: str, size: int) -> str:
        """`size` hexadecimal digits that are the same for the same parts, and tell nothing of them without the key."""
        return self._derived(b"name", *(part.encode() for part in parts)).hex()[:size]

    def cipher(self, salt: bytes) -> AESGCM:
        """What seals the file with this salt."""
        return AESGCM(self._derived(b"file", salt))

    def _derived(self, *parts: bytes) -> bytes:
        message = b"".join(len(part).to_bytes(8) + part for part in parts)
        return hmac.digest(self._secret, message, hashlib.sha256)


def slices(size: int) -> Iterator[tuple[int, int]]:
    """The parts in which so many bytes are sealed."""
    return ((start, min(start + PART_BYTES, size)) for start in range(0, size, PART_BYTES))


def write_sealed(path: Path, keys: Keys, header: bytes, buffers: Iterable[Any], *, may_stay: Callable[[], bool]) -> int:
    """Write a file that only its owner may read, and return its size. Raises OSError; nothing is left then, or when
    `may_stay` says no at the end. `buffers` are arrays of bytes.
    """
    salt = os.urandom(SALT_BYTES)
    cipher, start = keys.cipher(salt), _START.pack(MAGIC, salt, len(header))
    temporary = path.with_name(path.name + TEMPORARY)
    sealed = bytearray(PART_BYTES + TAG_BYTES)
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb", buffering=0) as file:
            _write_all(file, start + cipher.encrypt(_nonce(0), header, start))
            number = 0
            for buffer in buffers:
                for first, end in slices(len(buffer)):
                    number += 1
                    view = memoryview(sealed)[: end - first + TAG_BYTES]
                    cipher.encrypt_into(_nonce(number), buffer[first:end], start, view)
                    _write_all(file, view)
            size = file.tell()
        if may_stay():
            temporary.rename(path)
            return size
        return 0
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


class SealedReader:
    """A file that is open: its header, then its parts in their order. Raises NotReadable and OSError."""

    def __init__(self, file: BinaryIO, keys: Keys) -> None:
        self._file = file
        start = file.read(_START.size)
        if len(start) < _START.size:
            raise NotReadable
        magic, salt, size = _START.unpack(start)
        if magic != MAGIC or size > MOST_HEADER_BYTES:
            raise NotReadable
        self._start, self._cipher, self._number = start, keys.cipher(salt), 0
        self.header = self._opened(size)

    def read(self, size: int) -> bytes:
        """The next buffer, which has `size` bytes."""
        parts = []
        for first, end in slices(size):
            self._number += 1
            parts.append(self._opened(end - first))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def end(self) -> None:
        """Raises NotReadable when there is more."""
        if self._file.read(1):
            raise NotReadable

    def _opened(self, size: int) -> bytes:
        sealed = self._file.read(size + TAG_BYTES)
        if len(sealed) < size + TAG_BYTES:
            raise NotReadable
        try:
            return self._cipher.decrypt(_nonce(self._number), sealed, self._start)
        except InvalidTag:
            raise NotReadable from None


def _nonce(number: int) -> bytes:
    return number.to_bytes(12)


def _write_all(file: Any, data: Any) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]

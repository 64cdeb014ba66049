"""Blobs that clients carry for us: sealed, so that nobody can read or alter them, nor use them in another project.

A blob is a mark, then base64url of a header, a nonce and AES-256-GCM over the compressed content. What it is for, whom
it belongs to and the header, which gives the content's size, are authenticated with it: who checks a blob knows how
much memory its content takes, and has unpacked nothing. The nonce is derived from all of that with a key of its own (as
RFC 5297 does for its synthetic IV): the same content has the same blob, so that a job that is replayed gives the events
that were read.

Blobs of the first version have no header. They still open; their size is found by unpacking them piece by piece.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

Purpose = Literal["compaction", "reasoning"]

MARK = "mlxr2."
FIRST_MARK = "mlxr1."
SIZE_BYTES = 8
NONCE_BYTES = 12
PIECE_BYTES = 64 << 10


class NotSealedHere(Exception):
    """The blob is another server's, another project's, of another kind, or was altered: which of them can't be told."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """A blob that is ours, checked and still packed."""

    packed: bytes
    declared: int | None
    """Bytes of the content, authenticated; ``None`` in blobs of the first version."""

    def size(self, *, limit: int) -> int:
        """The bytes of the content; where they are more than ``limit``, some number above it."""
        if self.declared is not None:
            return self.declared
        unpacker, rest, size = zlib.decompressobj(), self.packed, 0
        while rest and not unpacker.eof and size <= limit:
            size += len(unpacker.decompress(rest, PIECE_BYTES))
            rest = unpacker.unconsumed_tail
        return size

    def content(self, *, limit: int) -> bytes:
        """The content, of at most ``limit`` bytes. Raises :class:`NotSealedHere` when it has more."""
        unpacker = zlib.decompressobj()
        content = unpacker.decompress(self.packed, limit + 1)
        if len(content) > limit or not unpacker.eof:
            raise NotSealedHere
        return content


class Sealer:
    """Seals with a key that is derived from the server's secret; every process with the same secret opens the blobs.

    Blobs that were sealed with one of ``older`` secrets open too.
    """

    def __init__(self, secret: str, *, older: Sequence[str] = ()) -> None:
        self._cipher = _cipher(secret)
        self._ciphers = (self._cipher, *map(_cipher, older))
        self._nonce_key = _derived(secret, b"mlx-responses nonces")

    def seal(self, content: bytes, *, purpose: Purpose, owner: str) -> str:
        """The blob of ``content``, which ``owner`` alone can have opened, for this purpose alone."""
        header, packed = len(content).to_bytes(SIZE_BYTES), zlib.compress(content)
        context = _context(purpose, owner, header)
        nonce = hmac.digest(self._nonce_key, context + b"\n" + packed, hashlib.sha256)[:NONCE_BYTES]
        sealed = self._cipher.encrypt(nonce, packed, context)
        return MARK + base64.urlsafe_b64encode(header + nonce + sealed).decode()

    def check(self, blob: str, *, purpose: Purpose, owner: str) -> Sealed:
        """The blob, found to be ours and not unpacked. Raises :class:`NotSealedHere`."""
        raw, has_header = _raw(blob)
        header = raw[:SIZE_BYTES] if has_header else b""
        nonce = raw[len(header) :][:NONCE_BYTES]
        packed = self._decrypted(nonce, raw[len(header) + NONCE_BYTES :], _context(purpose, owner, header))
        return Sealed(packed, int.from_bytes(header) if has_header else None)

    def open(self, blob: str, *, purpose: Purpose, owner: str, limit: int) -> bytes:
        """The content of a blob, of at most ``limit`` bytes. Raises :class:`NotSealedHere`."""
        return self.check(blob, purpose=purpose, owner=owner).content(limit=limit)

    def _decrypted(self, nonce: bytes, sealed: bytes, context: bytes) -> bytes:
        for cipher in self._ciphers:
            try:
                return cipher.decrypt(nonce, sealed, context)
            except (InvalidTag, ValueError):
                continue
        raise NotSealedHere


def fingerprint(secret: str) -> str:
    """What tells one secret from another and says nothing of it: 64 hexadecimal digits."""
    return _derived(secret, b"mlx-responses fingerprint").hex()


def _raw(blob: str) -> tuple[bytes, bool]:
    """A blob's bytes, and whether they begin with a header."""
    has_header = blob.startswith(MARK)
    if not has_header and not blob.startswith(FIRST_MARK):
        raise NotSealedHere
    try:
        return base64.b64decode(blob[len(MARK) :], altchars=b"-_", validate=True), has_header
    except (ValueError, binascii.Error):
        raise NotSealedHere from None


def _cipher(secret: str) -> AESGCM:
    return AESGCM(_derived(secret, b"mlx-responses blobs"))


def _derived(secret: str, info: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(secret.encode())


def _context(purpose: Purpose, owner: str, header: bytes) -> bytes:
    about = f"{purpose}\n{owner}".encode()
    return about + b"\n" + header if header else about

"""Seals blobs that clients carry, so that nobody can read or alter them, or use them in another project.

A blob is a marker, then base64url of a header, a nonce and AES-256-GCM over the compressed content. Its purpose, its
owner and the header, which contains the content's size, are authenticated with it: checking a blob gives the size of
its content without unpacking it. The nonce is derived from all of these with a separate key (as RFC 5297 derives its
synthetic IV): the same content has the same blob, so that a replayed job has the same events.

Blobs of the first version have no header. They can still be opened; their size is found by unpacking them in parts.
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

MARKER = "mlxr2."
FIRST_MARKER = "mlxr1."
SIZE_BYTES = 8
NONCE_BYTES = 12
PART_BYTES = 64 << 10


class NotSealedHere(Exception):
    """The blob is another server's, another owner's, has another purpose, or was altered; it is unknown which."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """A blob of this server, checked and still compressed."""

    packed: bytes
    declared: int | None
    """The content's bytes, authenticated; ``None`` in blobs of the first version."""

    def size(self, *, limit: int) -> int:
        """The bytes of the content; if they are more than ``limit``, any number above it."""
        if self.declared is not None:
            return self.declared
        unpacker, rest, size = zlib.decompressobj(), self.packed, 0
        while rest and not unpacker.eof and size <= limit:
            size += len(unpacker.decompress(rest, PART_BYTES))
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
    """Seals with a key derived from the server's secret; every process with the same secret can open the blobs.

    Blobs that were sealed with one of the ``older`` secrets can be opened too.
    """

    def __init__(self, secret: str, *, older: Sequence[str] = ()) -> None:
        self._cipher = _cipher(secret)
        self._ciphers = (self._cipher, *map(_cipher, older))
        self._nonce_key = _derived(secret, b"mlx-responses nonces")

    def seal(self, content: bytes, *, purpose: Purpose, owner: str) -> str:
        """The blob of ``content``, which can only be opened for ``owner`` and this purpose."""
        header, packed = len(content).to_bytes(SIZE_BYTES), zlib.compress(content)
        context = _context(purpose, owner, header)
        nonce = hmac.digest(self._nonce_key, context + b"\n" + packed, hashlib.sha256)[:NONCE_BYTES]
        sealed = self._cipher.encrypt(nonce, packed, context)
        return MARKER + base64.urlsafe_b64encode(header + nonce + sealed).decode()

    def check(self, blob: str, *, purpose: Purpose, owner: str) -> Sealed:
        """Check a blob without unpacking it. Raises :class:`NotSealedHere`."""
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


def prompt_cache_secret(secret: str) -> bytes:
    """The secret with which workers seal cached prompts on their disks."""
    return _derived(secret, b"mlx-responses prompt cache")


def fingerprint(secret: str) -> str:
    """64 hexadecimal digits that identify a secret without revealing it."""
    return _derived(secret, b"mlx-responses fingerprint").hex()


def _raw(blob: str) -> tuple[bytes, bool]:
    """A blob's bytes, and whether they start with a header."""
    has_header = blob.startswith(MARKER)
    if not has_header and not blob.startswith(FIRST_MARKER):
        raise NotSealedHere
    try:
        return base64.b64decode(blob[len(MARKER) :], altchars=b"-_", validate=True), has_header
    except (ValueError, binascii.Error):
        raise NotSealedHere from None


def _cipher(secret: str) -> AESGCM:
    return AESGCM(_derived(secret, b"mlx-responses blobs"))


def _derived(secret: str, info: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(secret.encode())


def _context(purpose: Purpose, owner: str, header: bytes) -> bytes:
    context = f"{purpose}\n{owner}".encode()
    return context + b"\n" + header if header else context

"""Blobs that clients carry for us: sealed, so that nobody can read or alter them, nor use them in another project.

A blob is a mark, then base64url of a nonce and of AES-256-GCM over the compressed content. What it is for and whom it
belongs to are authenticated with it. The nonce is derived from all of that with a key of its own (as RFC 5297 does for
its synthetic IV): the same content has the same blob, so that a job that is replayed gives the events that were read.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import zlib
from typing import Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

Purpose = Literal["compaction", "reasoning"]

MARK = "mlxr1."
NONCE_BYTES = 12


class NotSealedHere(Exception):
    """The blob is another server's, another project's, of another kind, or was altered: which of them can't be told."""


class Sealer:
    """Seals with a key that is derived from the server's secret; every process with the same secret opens the blobs."""

    def __init__(self, secret: str) -> None:
        self._cipher = AESGCM(_derived(secret, b"mlx-responses blobs"))
        self._nonce_key = _derived(secret, b"mlx-responses nonces")

    def seal(self, content: bytes, *, purpose: Purpose, owner: str) -> str:
        """The blob of ``content``, which ``owner`` alone can have opened, for this purpose alone."""
        packed, context = zlib.compress(content), _context(purpose, owner)
        nonce = hmac.digest(self._nonce_key, context + b"\n" + packed, hashlib.sha256)[:NONCE_BYTES]
        sealed = self._cipher.encrypt(nonce, packed, context)
        return MARK + base64.urlsafe_b64encode(nonce + sealed).decode()

    def open(self, blob: str, *, purpose: Purpose, owner: str) -> bytes:
        """The content of a blob. Raises :class:`NotSealedHere`."""
        if not blob.startswith(MARK):
            raise NotSealedHere
        try:
            raw = base64.b64decode(blob.removeprefix(MARK), altchars=b"-_", validate=True)
            packed = self._cipher.decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], _context(purpose, owner))
        except (InvalidTag, ValueError, binascii.Error):
            raise NotSealedHere from None
        return zlib.decompress(packed)


def fingerprint(secret: str) -> str:
    """What tells one secret from another and says nothing of it: 64 hexadecimal digits."""
    return _derived(secret, b"mlx-responses fingerprint").hex()


def _derived(secret: str, info: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(secret.encode())


def _context(purpose: Purpose, owner: str) -> bytes:
    return f"{purpose}\n{owner}".encode()

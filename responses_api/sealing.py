"""Blobs that clients carry for us: sealed, so that nobody can read or alter them, nor use them in another project.

A blob is a mark, then base64url of a nonce and of AES-256-GCM over the compressed content. What it is for and whom it
belongs to are authenticated with it.
"""

from __future__ import annotations

import base64
import binascii
import secrets
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
        key = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"mlx-responses blobs").derive(secret.encode())
        self._cipher = AESGCM(key)

    def seal(self, content: bytes, *, purpose: Purpose, owner: str) -> str:
        """The blob of ``content``, which ``owner`` alone can have opened, for this purpose alone."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = self._cipher.encrypt(nonce, zlib.compress(content), _context(purpose, owner))
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
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"mlx-responses fingerprint").derive(secret.encode())
    return derived.hex()


def _context(purpose: Purpose, owner: str) -> bytes:
    return f"{purpose}\n{owner}".encode()

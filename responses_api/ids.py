"""Identifiers: a prefix for the kind, then 48 opaque hexadecimal digits.

New ids are made from UUIDv7 and random bits, so that they are unique everywhere and sort roughly by time. Derived ids
are a function of the response they belong to: a response that is replayed through the stream builder gets the same item
ids. Clients may make ids of their own for input items; those only have to be storable.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Literal

import uuid_utils

Prefix = Literal[
    "resp_",
    "msg_",
    "fc_",
    "fco_",
    "call_",
    "rs_",
    "ctc_",
    "ctco_",
    "cmp_",
    "item_",
    "conv_",
    "req_",
    "proj_",
    "web_",
    "worker_",
]

DIGITS = 48
MAX_CLIENT_ID_LENGTH = 256


def new_id(prefix: Prefix) -> str:
    """A fresh id, unique without coordination."""
    return prefix + uuid_utils.uuid7().hex + secrets.token_hex(8)


def derived_id(prefix: Prefix, response_id: str, index: int) -> str:
    """The id of the `index`-th object of its kind in a response: the same arguments always give the same id."""
    return prefix + hashlib.sha256(f"{prefix}\n{response_id}\n{index}".encode()).hexdigest()[:DIGITS]


def is_client_id(value: str) -> bool:
    """Whether a client's own id can be stored: 1 to 256 characters without NUL and unpaired surrogates."""
    return 0 < len(value) <= MAX_CLIENT_ID_LENGTH and not any(c == "\0" or "\ud800" <= c <= "\udfff" for c in value)

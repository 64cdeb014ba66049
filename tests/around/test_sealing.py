"""Sealed blobs: opened unaltered or refused, and never decompressed beyond their declared size."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_api.sealing import MARKER, SIZE_BYTES, NotSealedHere, Sealer

SEALER = Sealer("a secret of this server")
LIMIT = 1 << 20
OF_THE_FIRST_VERSION = "mlxr1.DZgKuG2ykakQsIeEe7rdPjBEg0Wm0iMqE2LXjV_nUkIH3pTBogkGtgiDVw=="
"""The blob of b"content" for the owner "a", as made before blobs declared their size."""


@given(st.binary(max_size=2000), st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_a_blob_opens_for_its_owner_and_purpose_only(content: bytes, owner: str) -> None:
    blob = SEALER.seal(content, purpose="compaction", owner=owner)
    assert SEALER.open(blob, purpose="compaction", owner=owner, limit=LIMIT) == content
    assert Sealer("a secret of this server").open(blob, purpose="compaction", owner=owner, limit=LIMIT) == content
    assert SEALER.seal(content, purpose="compaction", owner=owner) == blob  # a job that is replayed needs the same blob
    header = len(MARKER) + 4 * SIZE_BYTES // 3
    assert SEALER.seal(content, purpose="reasoning", owner=owner)[header : header + 14] != blob[header : header + 14]
    assert SEALER.seal(content, purpose="compaction", owner=owner + "2")[header:][:14] != blob[header:][:14]
    for opener, purpose, who in (
        (SEALER, "reasoning", owner),
        (SEALER, "compaction", owner + "x"),
        (Sealer("another"), "compaction", owner),
    ):
        with pytest.raises(NotSealedHere):
            opener.open(blob, purpose=purpose, owner=who, limit=LIMIT)  # type: ignore[arg-type]


@given(st.data())
def test_one_changed_character_is_refused(data: st.DataObject) -> None:
    """A character of its declared size too."""
    blob = SEALER.seal(b"content", purpose="compaction", owner="a")
    place = data.draw(st.integers(0, len(blob) - 1))
    other = data.draw(st.characters().filter(lambda character: character != blob[place]))
    altered = blob[:place] + other + blob[place + 1 :]
    try:
        content = SEALER.open(altered, purpose="compaction", owner="a", limit=LIMIT)
    except NotSealedHere:
        return
    # The bits that pad base64's last character carry nothing.
    assert place >= len(blob) - 3
    assert content == b"content"


@given(st.text(max_size=80))
def test_no_other_text_opens(text: str) -> None:
    for blob in (text, f"mlxr1.{text}", f"mlxr2.{text}"):
        with pytest.raises(NotSealedHere):
            SEALER.open(blob, purpose="compaction", owner="a", limit=LIMIT)


def test_a_blob_declares_its_size_and_is_not_decompressed_beyond_a_limit() -> None:
    """64 KB that hold 50 MB are checked without decompression."""
    blob = SEALER.seal(b"a" * 50_000_000, purpose="compaction", owner="a")
    assert len(blob) < 80_000
    sealed = SEALER.check(blob, purpose="compaction", owner="a")
    assert sealed.size(limit=10) == 50_000_000
    with pytest.raises(NotSealedHere):
        sealed.content(limit=1000)


def test_blobs_of_the_first_version_still_open() -> None:
    """Their size is measured piece by piece, and only up to the limit."""
    sealed = SEALER.check(OF_THE_FIRST_VERSION, purpose="compaction", owner="a")
    assert sealed.declared is None
    assert sealed.size(limit=100) == len(b"content")
    assert sealed.content(limit=7) == b"content"
    assert sealed.size(limit=3) > 3
    for wrong in (OF_THE_FIRST_VERSION.replace("mlxr1", "mlxr2"), OF_THE_FIRST_VERSION[:-9] + "AAAAAAAA="):
        with pytest.raises(NotSealedHere):
            SEALER.check(wrong, purpose="compaction", owner="a")


def test_a_blob_sealed_with_an_older_secret_opens() -> None:
    """Nothing new is sealed with it."""
    rotated = Sealer("a new secret", older=["another", "a secret of this server"])
    old = SEALER.seal(b"content", purpose="reasoning", owner="a")
    assert rotated.open(old, purpose="reasoning", owner="a", limit=LIMIT) == b"content"
    new = rotated.seal(b"content", purpose="reasoning", owner="a")
    assert Sealer("a new secret").open(new, purpose="reasoning", owner="a", limit=LIMIT) == b"content"
    assert base64.urlsafe_b64decode(new[len(MARKER) :])[:SIZE_BYTES] == len(b"content").to_bytes(SIZE_BYTES)
    with pytest.raises(NotSealedHere):
        SEALER.open(new, purpose="reasoning", owner="a", limit=LIMIT)

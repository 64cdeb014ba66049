"""Blobs: whole, or refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_api.sealing import NotSealedHere, Sealer

SEALER = Sealer("a secret of this server")


@given(st.binary(max_size=2000), st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_what_was_sealed_opens_for_its_owner_and_purpose_alone(content: bytes, owner: str) -> None:
    blob = SEALER.seal(content, purpose="compaction", owner=owner)
    assert SEALER.open(blob, purpose="compaction", owner=owner) == content
    assert Sealer("a secret of this server").open(blob, purpose="compaction", owner=owner) == content
    assert SEALER.seal(content, purpose="compaction", owner=owner) == blob  # as a job that is replayed needs it
    assert SEALER.seal(content, purpose="reasoning", owner=owner)[:20] != blob[:20]
    assert SEALER.seal(content, purpose="compaction", owner=owner + "2")[:20] != blob[:20]
    for opener, purpose, who in (
        (SEALER, "reasoning", owner),
        (SEALER, "compaction", owner + "x"),
        (Sealer("another"), "compaction", owner),
    ):
        with pytest.raises(NotSealedHere):
            opener.open(blob, purpose=purpose, owner=who)  # type: ignore[arg-type]


@given(st.data())
def test_one_changed_character_is_enough(data: st.DataObject) -> None:
    blob = SEALER.seal(b"content", purpose="compaction", owner="a")
    place = data.draw(st.integers(0, len(blob) - 1))
    other = data.draw(st.characters().filter(lambda character: character != blob[place]))
    altered = blob[:place] + other + blob[place + 1 :]
    try:
        content = SEALER.open(altered, purpose="compaction", owner="a")
    except NotSealedHere:
        return
    # The bits that pad base64's last character carry nothing.
    assert place >= len(blob) - 3
    assert content == b"content"


@given(st.text(max_size=80))
def test_no_other_text_opens(text: str) -> None:
    for blob in (text, f"mlxr1.{text}"):
        with pytest.raises(NotSealedHere):
            SEALER.open(blob, purpose="compaction", owner="a")

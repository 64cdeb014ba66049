"""Ids are unique or derived, and client-made ones are bounded."""

import re

import pytest

from responses_api.ids import MAX_CLIENT_ID_LENGTH, derived_id, is_client_id, new_id


def test_new_ids_are_prefixed_opaque_and_distinct() -> None:
    made = {new_id("resp_") for _ in range(1000)}
    assert len(made) == 1000
    assert all(re.fullmatch(r"resp_[0-9a-f]{48}", one) for one in made)


def test_derived_id_depends_on_all_its_arguments_and_nothing_else() -> None:
    one = derived_id("msg_", "resp_a", 0)
    assert re.fullmatch(r"msg_[0-9a-f]{48}", one)
    assert one == derived_id("msg_", "resp_a", 0)
    others = {derived_id("msg_", "resp_a", 1), derived_id("msg_", "resp_b", 0), derived_id("fc_", "resp_a", 0)}
    assert len({one.removeprefix("msg_"), *(other.split("_")[1] for other in others)}) == 4


@pytest.mark.parametrize("good", ["a", "msg_024113ad-014a-568e-b1e7-c464ffa7915d", "日本", "x" * MAX_CLIENT_ID_LENGTH])
def test_client_ids_may_be_anything_storable(good: str) -> None:
    assert is_client_id(good)


@pytest.mark.parametrize("bad", ["", "a\0b", "\ud800", "x" * (MAX_CLIENT_ID_LENGTH + 1)])
def test_client_ids_that_cannot_be_stored_are_refused(bad: str) -> None:
    assert not is_client_id(bad)

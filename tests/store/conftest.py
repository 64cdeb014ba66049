"""Somebody who uses the store."""

import pytest

from responses_api.counting import take_counts
from tests.turns import Conversationalist


@pytest.fixture
def someone() -> Conversationalist:
    take_counts()
    return Conversationalist.make()

"""What models share: states are reserved only while there is room, and cached prompts give way."""

import pytest

from inference.memory import Account, MemoryBudget


class Place:
    """A budget of 100 bytes that two models share, and how often others heard of a change."""

    def __init__(self) -> None:
        self.budget = MemoryBudget(100)
        self.one, self.two = self.budget.open_account(), self.budget.open_account()
        self.heard = 0
        self.budget.listen(self._hear)

    def _hear(self) -> None:
        self.heard += 1

    def hears(self) -> int:
        """How often since the last call."""
        heard, self.heard = self.heard, 0
        return heard


@pytest.fixture
def place() -> Place:
    return Place()


def test_states_are_reserved_while_all_is_within_the_budget(place: Place) -> None:
    place.one.set_weights(30)
    place.two.set_weights(20)
    assert place.one.reserve_state(40)
    assert not place.two.reserve_state(11)
    assert (place.two.lacks, place.two.state, place.budget.free) == (1, 0, 10)
    assert place.two.reserve_state(10)
    assert (place.two.lacks, place.budget.free) == (0, 0)
    assert place.one.reserve_state(39), "less is always granted"
    assert place.two.reserve_state(11)


def test_less_is_granted_even_when_weights_have_taken_too_much(place: Place) -> None:
    assert place.one.reserve_state(60)
    place.two.set_weights(90)
    assert place.budget.free == -50
    assert place.one.reserve_state(20)
    assert not place.one.reserve_state(21)


def test_whoever_waits_hears_of_what_is_given_back_and_of_what_is_lacking(place: Place) -> None:
    """And nobody hears of what concerns nobody."""
    assert place.one.reserve_state(60)
    assert place.hears() == 0
    assert not place.two.reserve_state(50)
    assert place.hears() == 1
    assert not place.two.reserve_state(50)
    assert place.hears() == 0
    assert place.one.reserve_state(30)
    assert place.hears() == 1
    assert place.two.reserve_state(50)
    assert place.hears() == 1
    place.one.close()
    assert (place.hears(), place.budget.reserved) == (1, 50)
    place.budget.unlisten(place._hear)
    place.two.close()
    assert place.hears() == 0


def test_cached_prompts_take_what_is_free_and_give_way(place: Place) -> None:
    """All models' by what each has."""
    place.one.set_weights(20)
    place.hears()
    assert place.one.cache_limit == 80
    place.one.set_cache(60)
    assert (place.one.cache_limit, place.two.cache_limit) == (80, 20)
    place.two.set_cache(20)
    assert place.one.reserve_state(40)
    assert place.hears() == 1
    assert (place.one.cache_limit, place.two.cache_limit) == (30, 10)
    place.two.set_weights(50)
    assert (place.one.cache_limit, place.two.cache_limit) == (0, 0)


def test_what_is_left_to_a_pinned_model_is_not_for_others(place: Place) -> None:
    """Whether it is loaded or not."""

    def most(account: Account) -> int:
        return account.most_state

    place.one.set_weights(30)
    assert most(place.one) == 70
    place.two.pinned = 25
    place.two.set_weights(20)
    assert (most(place.one), most(place.two)) == (45, 80)

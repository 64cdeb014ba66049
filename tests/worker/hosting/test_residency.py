"""Decisions about models: the least recently used one is unloaded, and none while it is in use."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_api.worker.hosting.residency import Decision, Resident, decide

NOW = 100.0


def loaded(name: str, size: int = 10, **state: Any) -> Resident:
    return Resident(name=name, is_loaded=True, size=size, **state)


def wanted(name: str, size: int = 10, *, since: float | None = 50.0, **state: Any) -> Resident:
    """A model on disk that an interactive request waits for."""
    return Resident(name=name, is_loaded=False, size=size, waited_for_since=since, **state)


def decided(*models: Resident, free: int = 0, ttl: float = 0.0) -> Decision:
    return decide(models, free=free, ttl=ttl, now=NOW)


def test_a_model_is_loaded_if_there_is_memory() -> None:
    assert decided(loaded("a"), wanted("b"), free=10) == Decision(load="b")
    assert decided(loaded("a"), Resident(name="b", is_loaded=False, size=5), free=10) == Decision()


def test_the_least_recently_used_model_is_unloaded() -> None:
    """One at a time; none that is in use or pinned."""
    a, b = loaded("a", last_used=2.0), loaded("b", last_used=1.0)
    assert decided(a, b, wanted("c")) == Decision(unload="b")
    assert decided(a, replace(b, in_use=True), wanted("c")) == Decision(unload="a")
    assert decided(a, replace(b, is_pinned=True), wanted("c")) == Decision(unload="a")
    assert decided(a, b, wanted("c", size=20)) == Decision(unload="b", drained=frozenset("a"))


def test_models_in_use_are_drained_if_the_idle_ones_have_too_little_memory() -> None:
    """As few as have enough memory, including idle ones; only for interactive requests."""
    a, b = loaded("a", in_use=True, last_used=2.0), loaded("b", in_use=True, last_used=1.0)
    assert decided(a, b, wanted("c")) == Decision(drained=frozenset("b"))
    assert decided(a, replace(b, in_use=False), wanted("c", size=20)) == Decision(drained=frozenset("ab"))
    assert decided(a, b, wanted("c", since=None, jobs_wait=True)) == Decision()


def test_a_drained_model_stays_drained_until_the_other_one_is_loaded() -> None:
    """Even if it was used later than another one meanwhile."""
    a, b = loaded("a", in_use=True, last_used=2.0, is_drained=True), loaded("b", in_use=True, last_used=1.0)
    assert decided(a, b, wanted("c")) == Decision(drained=frozenset("a"))


def test_a_model_that_never_fits_is_given_up() -> None:
    assert decided(loaded("a", is_pinned=True), wanted("b")) == Decision(give_up="b")


def test_models_are_loaded_in_the_order_of_their_requests() -> None:
    """A later request doesn't overtake an earlier one that waits for memory; jobs come last."""
    a = loaded("a", in_use=True)
    first, second = wanted("b", size=15, since=1.0), wanted("c", size=5, since=2.0)
    assert decided(second, a, first, free=5) == Decision(drained=frozenset("a"))
    assert decided(second, a, first, free=15) == Decision(load="b")
    job = wanted("d", size=5, since=None, jobs_wait=True)
    assert decided(job, second, free=5) == Decision(load="c")
    assert decided(job, wanted("e", size=99, since=None, jobs_wait=True), free=5) == Decision(load="d")


def test_idle_models_are_unloaded_for_sequences_without_memory() -> None:
    """If none of its sequences runs, models in use are drained, too; otherwise it waits for its own sequences."""
    short = loaded("a", in_use=True, lacks=5, lacks_since=3.0)
    idle, busy = loaded("b"), loaded("b", in_use=True)
    assert decided(short, idle) == Decision(unload="b")
    assert decided(short, busy) == Decision(drained=frozenset("b"))
    assert decided(replace(short, is_running=True), busy) == Decision()


def test_pinned_models_are_loaded_and_stay_loaded() -> None:
    pin = Resident(name="p", is_loaded=False, size=10, is_pinned=True)
    assert decided(pin, free=10) == Decision(load="p")
    assert decided(pin, loaded("a")) == Decision(unload="a")
    assert decided(pin, wanted("a"), free=10) == Decision(load="a")
    assert decided(loaded("p", is_pinned=True), ttl=1.0) == Decision()


def test_a_model_that_has_failed_is_loaded_again_after_its_pause() -> None:
    """Without a request; during the pause neither for a request nor for its pin."""
    failed = Resident(name="a", is_loaded=False, size=10, has_failed=True)
    assert decided(failed, free=10) == Decision(load="a")
    paused = replace(failed, paused_until=NOW + 5)
    assert decided(paused, free=10) == Decision(again_at=NOW + 5)
    assert decided(replace(paused, is_pinned=True, waited_for_since=1.0), free=10) == Decision(again_at=NOW + 5)
    assert decided(replace(failed, is_listed=False), free=10) == Decision()


def test_an_idle_model_is_unloaded_after_its_time_to_live() -> None:
    a = loaded("a", last_used=90.0)
    assert decided(a, ttl=0.0) == Decision()
    assert decided(a, ttl=11.0) == Decision(again_at=101.0)
    assert decided(a, ttl=10.0) == Decision(unload="a")
    assert decided(replace(a, in_use=True), ttl=10.0) == Decision()
    assert decided(a, loaded("b", last_used=95.0), ttl=11.0) == Decision(again_at=101.0)


def test_a_model_without_files_is_unloaded_when_it_is_idle() -> None:
    assert decided(loaded("a", is_listed=False, last_used=NOW)) == Decision(unload="a")
    assert decided(loaded("a", is_listed=False, in_use=True)) == Decision()


NAMES = "abcde"
STATES = st.fixed_dictionaries(
    {
        "is_loaded": st.booleans(),
        "size": st.integers(1, 20),
        "is_pinned": st.booleans(),
        "in_use": st.booleans(),
        "last_used": st.floats(0, NOW),
        "waited_for_since": st.none() | st.floats(0, NOW),
        "jobs_wait": st.booleans(),
    }
)


@given(st.lists(STATES, min_size=1, max_size=5), st.integers(-10, 40), st.sampled_from([0.0, 10.0]))
def test_nothing_in_use_or_pinned_is_ever_unloaded(states: list[dict[str, Any]], free: int, ttl: float) -> None:
    """And no model is loaded without memory for it."""
    models = {
        name: Resident(name=name, **{**state, "in_use": state["in_use"] and state["is_loaded"]})
        for name, state in zip(NAMES, states, strict=False)
    }
    decision = decided(*models.values(), free=free, ttl=ttl)
    assert sum(map(bool, (decision.load, decision.unload, decision.give_up))) <= 1
    if decision.unload:
        model = models[decision.unload]
        assert model.is_loaded
        assert not model.in_use
        assert not model.is_pinned
    if decision.load:
        model = models[decision.load]
        assert not model.is_loaded
        assert model.size <= free
    assert all(models[name].is_loaded and not models[name].is_pinned for name in decision.drained)


@pytest.mark.parametrize("turns", [1, 7])
def test_two_models_that_are_always_wanted_take_turns(turns: int) -> None:
    """Neither waits forever for the other."""
    order: list[str] = []
    since = {"a": 1.0, "b": 2.0}
    resident = ""
    for clock in range(2 * turns):
        models = [
            loaded(name, last_used=float(clock)) if name == resident else wanted(name, since=since[name])
            for name in since
        ]
        decision = decided(*models, free=0 if resident else 10)
        if decision.unload:
            resident = ""
            decision = decided(*(wanted(name, since=since[name]) for name in since), free=10)
        order.append(decision.load)
        resident = decision.load
        since[resident] = 10.0 + clock
    assert order == ["a", "b"] * turns


ANSWER_SECONDS, LOAD_SECONDS = 3.0, 1.0
TICK = 0.25


class Traffic:
    """Models with room for two of them, and a clock. A request for a model uses it for ``ANSWER_SECONDS``."""

    def __init__(self, names: str) -> None:
        self.now = 0.0
        self.models = {name: Resident(name=name, is_loaded=False, size=10) for name in names}
        self.ends: dict[str, list[float]] = {name: [] for name in names}
        self.waiting: dict[str, list[float]] = {name: [] for name in names}
        self.waits: dict[str, list[float]] = {name: [] for name in names}
        """How long each request has waited."""
        self.loads: list[str] = []

    def ask(self, name: str) -> None:
        """A request for a model arrives."""
        self.waiting[name].append(self.now)
        self._decide()

    def run(self, until: float, *, every: dict[str, float]) -> None:
        """Let requests arrive, each model's at its own times in every second."""
        while self.now < until:
            self.now += TICK
            for name, ends in self.ends.items():
                if any(end <= self.now for end in ends):
                    self.ends[name] = [end for end in ends if end > self.now]
                    self._change(name, last_used=self.now)
                    self._decide()
            for name, offset in every.items():
                if self.now % 1 == offset:
                    self.ask(name)

    def _change(self, name: str, **state: Any) -> None:
        self.models[name] = replace(self.models[name], **state)

    def _decide(self) -> None:
        while True:
            for name in self.models:
                since = min(self.waiting[name], default=None)
                self._change(name, in_use=bool(self.ends[name]), waited_for_since=since)
            free = 20 - sum(model.size for model in self.models.values() if model.is_loaded)
            decision = decided(*self.models.values(), free=free)
            for name in self.models:
                self._change(name, is_drained=name in decision.drained)
            if decision.unload:
                self._change(decision.unload, is_loaded=False)
            if decision.load:
                self.loads.append(decision.load)
                self.now += LOAD_SECONDS
                self._change(decision.load, is_loaded=True)
            for name, model in self.models.items():
                if model.is_loaded and not model.is_drained and self.waiting[name]:
                    self.waits[name] += [self.now - since for since in self.waiting[name]]
                    self.ends[name] += [self.now + ANSWER_SECONDS] * len(self.waiting[name])
                    self.waiting[name] = []
                    self._change(name, last_used=self.now)
            if not (decision.load or decision.unload):
                return


def test_two_models_in_constant_use_do_not_starve_a_third() -> None:
    """It waits for the longest answer on one of them, and for its load."""
    traffic = Traffic("abc")
    traffic.run(20, every={"a": 0.0, "b": 0.5})
    assert max(traffic.waits["a"] + traffic.waits["b"]) <= 2 * LOAD_SECONDS
    traffic.ask("c")
    traffic.run(40, every={"a": 0.0, "b": 0.5})
    (waited,) = traffic.waits["c"]
    assert waited <= ANSWER_SECONDS + LOAD_SECONDS + TICK


@pytest.mark.parametrize("names", ["abc", "abcde"])
def test_models_in_constant_use_take_turns_within_a_bound(names: str) -> None:
    """A request waits at most for one drain and one load of each other model, and of its own."""
    traffic = Traffic(names)
    traffic.run(200, every={name: TICK * (number % 4) for number, name in enumerate(names)})
    bound = len(names) * (ANSWER_SECONDS + LOAD_SECONDS + TICK)
    for name in names:
        assert len(traffic.waits[name]) > 100
        assert max(traffic.waits[name]) <= bound
        assert traffic.loads.count(name) > 200 / bound / 2

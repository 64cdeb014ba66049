"""The queue before an engine keeps its order, its limit and its count."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.engine.scheduler import Scheduler
from inference.types import GenerationRequest, ModelError, Sampling


def request(name: str, priority: int = 0) -> GenerationRequest:
    return GenerationRequest(id=name, prompt=(1,), max_tokens=1, sampling=Sampling(), priority=priority)


def opened(slots: int) -> Scheduler:
    scheduler = Scheduler(slots)
    scheduler.open()
    return scheduler


@given(st.lists(st.integers(0, 2), max_size=20), st.integers(1, 5))
def test_requests_are_admitted_by_priority_then_arrival_within_the_slots(priorities: list[int], slots: int) -> None:
    scheduler = opened(slots)
    for i, priority in enumerate(priorities):
        scheduler.submit(request(str(i), priority))
    admitted: list[str] = []
    while batch := scheduler.admit():
        assert scheduler.load().running == len(batch) <= slots
        admitted += [entry.id for entry in batch]
        for entry in batch:
            scheduler.release(entry.id)
    assert admitted == [str(i) for i in sorted(range(len(priorities)), key=lambda i: (priorities[i], i))]


def test_a_cancelled_waiting_request_is_forgotten_and_a_running_one_is_told() -> None:
    scheduler = opened(1)
    for name in ("running", "waiting"):
        scheduler.submit(request(name))
    scheduler.admit()
    for name in ("running", "waiting", "unknown"):
        scheduler.cancel(name)
    assert scheduler.take_cancelled() == (["waiting"], ["running"])
    assert scheduler.take_cancelled() == ([], [])
    scheduler.release("running")
    assert scheduler.admit() == []


def test_load_counts_waiting_requests_against_the_free_slots() -> None:
    scheduler = opened(3)
    scheduler.submit(request("a"))
    scheduler.admit()
    scheduler.submit(request("b"))
    load = scheduler.load()
    assert (load.running, load.waiting, load.slots, load.free) == (1, 1, 3, 1)


def test_it_refuses_before_it_opens_and_after_it_closes() -> None:
    scheduler = Scheduler(1)
    with pytest.raises(ModelError):
        scheduler.submit(request("a"))
    scheduler.open()
    scheduler.submit(request("a"))
    scheduler.close()
    with pytest.raises(ModelError):
        scheduler.submit(request("b"))
    assert scheduler.drain() == ["a"]


def test_waiting_returns_at_once_for_what_came_before() -> None:
    scheduler = opened(1)
    scheduler.submit(request("a"))
    scheduler.wait(None)


def test_owners_take_turns_whoever_has_more_waiting() -> None:
    """The first of who comes late is admitted after no more than one of who has many."""
    scheduler = opened(slots=1)
    for number in range(5):
        scheduler.submit(replace(request(f"many {number}"), cache_scope="many"))
    assert [found.id for found in scheduler.admit()] == ["many 0"]
    for number in range(2):
        scheduler.submit(replace(request(f"few {number}"), cache_scope="few"))
    order: list[str] = []
    for _ in range(6):
        scheduler.release(order[-1] if order else "many 0")
        order += [found.id for found in scheduler.admit()]
    assert order == ["few 0", "many 1", "few 1", "many 2", "many 3", "many 4"]


def test_a_request_that_does_not_fit_holds_up_those_after_it() -> None:
    """It keeps its place; so does one that is put back."""
    scheduler = opened(3)
    for name in ("a", "b", "c"):
        scheduler.submit(request(name))
    assert [entry.id for entry in scheduler.admit(fits=lambda entry: entry.id != "b")] == ["a"]
    assert (scheduler.load().running, scheduler.load().waiting) == (1, 2)
    scheduler.submit(request("d"))
    (first,) = [request("a")]
    scheduler.put_back(first)
    assert (scheduler.load().running, scheduler.load().waiting) == (0, 4)
    assert [entry.id for entry in scheduler.admit()] == ["a", "b", "c"]
    scheduler.put_back(request("b"))
    scheduler.cancel("b")
    assert scheduler.take_cancelled() == (["b"], [])
    scheduler.release("b")
    assert [entry.id for entry in scheduler.admit()] == ["d"]


def test_an_engine_that_is_woken_does_not_wait() -> None:
    scheduler = opened(1)
    scheduler.wake()
    scheduler.wait(None)

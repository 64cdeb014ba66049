"""Admission threads: no owner gets more than half of them."""

import asyncio
import threading

import pytest

from responses_api.database.threads import ADMISSION_THREADS, Turns, in_admission_thread


@pytest.mark.django_db(transaction=True)
async def test_slow_requests_delay_no_other_owner() -> None:
    started, release = 0, threading.Event()
    counting, half_is_taken = threading.Lock(), threading.Event()

    def slow() -> None:
        nonlocal started
        with counting:
            started += 1
        if started == ADMISSION_THREADS // 2:
            half_is_taken.set()
        release.wait(30)

    waiting = [asyncio.ensure_future(in_admission_thread("greedy", slow)) for _ in range(4 * ADMISSION_THREADS)]
    try:
        assert await asyncio.to_thread(half_is_taken.wait, 30)
        assert await asyncio.wait_for(in_admission_thread("modest", lambda: "admitted"), 10) == "admitted"
        assert started == ADMISSION_THREADS // 2
    finally:
        release.set()
    await asyncio.gather(*waiting)
    assert started == 4 * ADMISSION_THREADS


async def test_a_caller_that_leaves_while_waiting_frees_its_turn() -> None:
    turns = Turns(1)
    order: list[str] = []
    first_may_end = asyncio.Event()

    async def ask(name: str, until: asyncio.Event | None = None) -> None:
        async with turns.turn("owner"):
            order.append(name)
            if until is not None:
                await until.wait()

    first = asyncio.ensure_future(ask("first", first_may_end))
    leaver, woken, last = (asyncio.ensure_future(ask(name)) for name in ("leaver", "woken", "last"))
    await asyncio.sleep(0)
    leaver.cancel()
    await asyncio.sleep(0)
    first_may_end.set()
    await first
    woken.cancel()  # it may have its turn already
    await asyncio.wait_for(last, 10)
    await asyncio.gather(leaver, woken, return_exceptions=True)
    assert order[0] == "first"
    assert order[-1] == "last"
    assert "leaver" not in order
    assert not turns._held
    assert not turns._waiting

"""The pause before a failed engine is started again."""

from responses_api.worker.hosting.restart_backoff import HEALTHY_SECONDS, LONGEST_SECONDS, RestartBackoff


class Clock:
    """A clock that the test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_pauses_double_up_to_the_longest() -> None:
    """The first restart is immediate."""
    clock = Clock()
    backoff = RestartBackoff(clock)
    assert backoff.remaining == 0
    pauses = []
    for _ in range(9):
        backoff.note_failure()
        pauses.append(backoff.remaining)
        clock.now += backoff.remaining
        assert backoff.remaining == 0
        backoff.note_start()
    assert pauses == [0, 1, 2, 4, 8, 16, 32, LONGEST_SECONDS, LONGEST_SECONDS]


def test_an_engine_that_ran_for_long_starts_at_once() -> None:
    """Its earlier failures are forgotten; those of an engine that has not started since aren't."""
    clock = Clock()
    backoff = RestartBackoff(clock)
    for _ in range(4):
        backoff.note_failure()
    clock.now += HEALTHY_SECONDS
    backoff.note_failure()
    assert backoff.remaining == 8
    backoff.note_start()
    clock.now += HEALTHY_SECONDS
    backoff.note_failure()
    assert backoff.remaining == 0

"""A transaction that PostgreSQL aborted for a deadlock is retried; one that failed otherwise is not."""

import pytest
from django.db import OperationalError

from responses_api.database.transaction_locks import DEADLOCK_DETECTED, DEADLOCK_TRIES, again_when_deadlocked


class Transaction:
    """Fails ``failures`` times with this SQLSTATE, then returns how often it was started."""

    def __init__(self, failures: int, sqlstate: str = DEADLOCK_DETECTED) -> None:
        self.starts, self._failures, self._sqlstate = 0, failures, sqlstate

    def __call__(self) -> int:
        self.starts += 1
        if self.starts > self._failures:
            return self.starts
        cause = Exception()
        cause.sqlstate = self._sqlstate  # type: ignore[attr-defined]
        raise OperationalError from cause


def test_a_deadlocked_transaction_is_retried() -> None:
    """A bounded number of times."""
    assert again_when_deadlocked(Transaction(DEADLOCK_TRIES - 1)) == DEADLOCK_TRIES
    hopeless = Transaction(DEADLOCK_TRIES)
    with pytest.raises(OperationalError):
        again_when_deadlocked(hopeless)
    assert hopeless.starts == DEADLOCK_TRIES


def test_other_errors_are_raised_at_once() -> None:
    """A lost connection is not a deadlock."""
    lost = Transaction(1, sqlstate="08006")
    with pytest.raises(OperationalError):
        again_when_deadlocked(lost)
    assert lost.starts == 1

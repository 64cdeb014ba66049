"""The memory that the models of a process share. Standard library only; any thread may use it."""

import threading
from collections.abc import Callable


class MemoryBudget:
    """Guarantees that states of running sequences are reserved only while they and all weights are within ``total``.

    Cached prompts use unreserved memory, with a limit for each model.
    """

    def __init__(self, total: int) -> None:
        """total: bytes."""
        self.total = total
        self._lock = threading.Lock()
        self._accounts: list[Account] = []
        self._listeners: list[Callable[[], None]] = []

    def open_account(self) -> "Account":
        """Create an empty account for a model."""
        account = Account(self)
        with self._lock:
            self._accounts.append(account)
        return account

    @property
    def reserved(self) -> int:
        """Bytes of weights and states."""
        with self._lock:
            return self._reserved()

    @property
    def free(self) -> int:
        """Bytes that are not reserved, including those of cached prompts; negative if the weights are too large."""
        return self.total - self.reserved

    def listen(self, listener: Callable[[], None]) -> None:
        """Call a function after each change for which others may wait. It must not block."""
        with self._lock:
            self._listeners.append(listener)

    def unlisten(self, listener: Callable[[], None]) -> None:
        """Stop calling a function."""
        with self._lock:
            self._listeners.remove(listener)

    def _reserved(self) -> int:
        return sum(account.weights + account.state for account in self._accounts)

    def _changed(self) -> None:
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener()


class Account:
    """One model's part of a budget, in bytes."""

    def __init__(self, budget: MemoryBudget) -> None:
        self.budget = budget
        self.weights = 0
        self.state = 0
        self.cache = 0
        """Cached prompts, as last reported by its engine."""
        self.lacks = 0
        """Bytes that were missing for the latest reservation of states; 0 if none were."""
        self.pinned = 0
        """Bytes that are reserved for this model, even if it is not loaded."""

    @property
    def most_state(self) -> int:
        """Most bytes for states, if other models only had their pinned memory."""
        budget = self.budget
        with budget._lock:
            others = sum(account.pinned for account in budget._accounts if account is not self)
            return budget.total - self.weights - others

    def set_weights(self, size: int) -> None:
        """Reserve memory for weights and for a step. Models are loaded only if there is enough."""
        self._set(weights=size)

    def reserve_state(self, size: int) -> bool:
        """Change the reservation for the states of running sequences to ``size`` bytes. False if they aren't free."""
        budget = self.budget
        with budget._lock:
            lacks = 0 if size <= self.state else budget._reserved() - self.state + size - budget.total
            is_news = (lacks > 0) != (self.lacks > 0)
            self.lacks = max(0, lacks)
            grows, shrinks = lacks <= 0 and size > self.state, size < self.state
            if lacks <= 0:
                self.state = size
            # Listeners may wait for free memory, or have to evict cached prompts when it is used.
            must_notify = is_news or shrinks or (grows and budget._reserved() + self._cached() > budget.total)
        if must_notify:
            budget._changed()
        return lacks <= 0

    def set_cache(self, size: int) -> None:
        """Report the bytes of cached prompts."""
        self.cache = size

    @property
    def cache_limit(self) -> int:
        """Limit of cached prompts: all unreserved bytes; if all caches exceed these, a share by their sizes."""
        budget = self.budget
        with budget._lock:
            room = max(0, budget.total - budget._reserved())
            cached = self._cached()
            return self.cache + room - cached if cached <= room else self.cache * room // cached

    def close(self) -> None:
        """Release everything. The account can be used again."""
        self._set(weights=0, state=0, cache=0, lacks=0)

    def _set(self, **sizes: int) -> None:
        with self.budget._lock:
            for name, size in sizes.items():
                setattr(self, name, size)
        self.budget._changed()

    def _cached(self) -> int:
        return sum(account.cache for account in self.budget._accounts)

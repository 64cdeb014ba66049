"""The memory that the models of a process share. Standard library only; any thread may use it."""

import threading
from collections.abc import Callable


class MemoryBudget:
    """Guarantees: the states of running sequences are reserved only while they and all weights are within `total`.

    Prompts that are cached take what nobody has reserved: each model is told how much it may keep.
    """

    def __init__(self, total: int) -> None:
        """total: bytes."""
        self.total = total
        self._lock = threading.Lock()
        self._accounts: list[Account] = []
        self._listeners: list[Callable[[], None]] = []

    def open_account(self) -> "Account":
        """The account of one model, empty."""
        account = Account(self)
        with self._lock:
            self._accounts.append(account)
        return account

    @property
    def reserved(self) -> int:
        """Bytes of weights and of states."""
        with self._lock:
            return self._reserved()

    @property
    def free(self) -> int:
        """Bytes that are not reserved, whatever prompts are cached in them; negative when weights take too much."""
        return self.total - self.reserved

    def listen(self, listener: Callable[[], None]) -> None:
        """Have a function called after each change that others may have waited for. It must not wait."""
        with self._lock:
            self._listeners.append(listener)

    def unlisten(self, listener: Callable[[], None]) -> None:
        """Call it no longer."""
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
    """What one model has of a budget, in bytes."""

    def __init__(self, budget: MemoryBudget) -> None:
        self.budget = budget
        self.weights = 0
        self.state = 0
        self.cache = 0
        """Cached prompts, as its engine has said last."""
        self.lacks = 0
        """What was not free when a state was to be reserved last; 0 if it was."""
        self.pinned = 0
        """What is left to this model whatever others need, loaded or not."""

    @property
    def most_state(self) -> int:
        """What states could have if no other model had anything but what is left to it."""
        budget = self.budget
        with budget._lock:
            others = sum(account.pinned for account in budget._accounts if account is not self)
            return budget.total - self.weights - others

    def set_weights(self, size: int) -> None:
        """Reserve memory for weights, and for what a step needs; the models that are loaded are chosen so that it is
        there.
        """
        self._set(weights=size)

    def reserve_state(self, size: int) -> bool:
        """Have `size` bytes for the states of running sequences instead of those before; False if they aren't there."""
        budget = self.budget
        with budget._lock:
            lacks = 0 if size <= self.state else budget._reserved() - self.state + size - budget.total
            is_news = (lacks > 0) != (self.lacks > 0)
            self.lacks = max(0, lacks)
            grows, shrinks = lacks <= 0 and size > self.state, size < self.state
            if lacks <= 0:
                self.state = size
            # Whoever waits hears of memory that is free, and whoever caches prompts of memory that isn't any more.
            tell = is_news or shrinks or (grows and budget._reserved() + self._cached() > budget.total)
        if tell:
            budget._changed()
        return lacks <= 0

    def set_cache(self, size: int) -> None:
        """How much cached prompts take."""
        self.cache = size

    @property
    def cache_limit(self) -> int:
        """How much cached prompts may take: what is free; or, if that is too little, a part of it by what each has."""
        budget = self.budget
        with budget._lock:
            room = max(0, budget.total - budget._reserved())
            cached = self._cached()
            return self.cache + room - cached if cached <= room else self.cache * room // cached

    def close(self) -> None:
        """Give everything back. The account may be used again."""
        self._set(weights=0, state=0, cache=0, lacks=0)

    def _set(self, **sizes: int) -> None:
        with self.budget._lock:
            for name, size in sizes.items():
                setattr(self, name, size)
        self.budget._changed()

    def _cached(self) -> int:
        return sum(account.cache for account in self.budget._accounts)

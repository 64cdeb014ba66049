"""Counts what the prefix caches of a worker's engines have done, for the figures of the whole server."""

from collections.abc import Mapping

from inference.types import CacheFigures, EngineLoad
from responses_api import counting
from responses_api.counting import count


class CacheCounts:
    """What of each engine's figures has been counted. An engine that begins anew is counted from 0. One thread at a
    time uses it.
    """

    def __init__(self) -> None:
        self._counted: dict[tuple[str, str], CacheFigures] = {}

    def count(self, loads: Mapping[str, EngineLoad]) -> None:
        """Add what is new in the loads of engines, by their models' names."""
        for name, load in loads.items():
            for tier, figures in (("memory", load.memory_cache), ("disk", load.disk_cache)):
                before = self._counted.get((name, tier), CacheFigures())
                self._counted[name, tier] = figures
                for family, old, new in (
                    (counting.PROMPT_CACHE_HITS, before.hits, figures.hits),
                    (counting.PROMPT_CACHE_MISSES, before.misses, figures.misses),
                    (counting.PROMPT_CACHE_TOKENS, before.tokens, figures.tokens),
                    (counting.PROMPT_CACHE_EVICTIONS, before.evictions, figures.evictions),
                ):
                    amount = new - old if new >= old else new
                    if amount:
                        count(family, amount, tier=tier)

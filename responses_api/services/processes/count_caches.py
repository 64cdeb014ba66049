"""Adds the figures of a worker's prefix caches to the counters of the server."""

from collections.abc import Mapping

from inference.types import CacheFigures, EngineLoad
from responses_api import counting
from responses_api.counting import count


class CacheCounts:
    """The figures of each engine that have been counted. A restarted engine is counted from 0.

    Only one thread at a time may use it.
    """

    def __init__(self) -> None:
        self._counted: dict[tuple[str, str], CacheFigures] = {}

    def count(self, loads: Mapping[str, EngineLoad]) -> None:
        """Count what is new in the loads of engines, by model."""
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

"""This process's unpublished counts. Cheap enough for every request: no I/O, and nothing of Django.

`services/processes/publish_counts.py` adds the counts to those of all processes in the database, where they outlive the
process. A series has its Prometheus name, and labels have a fixed set of values: never content, a project or a key.
"""

import re
import threading
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Family:
    """A metric. A histogram has ``buckets``: upper bounds, in seconds."""

    name: str
    help: str
    buckets: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()

    @property
    def bounds(self) -> tuple[str, ...]:
        """A histogram's upper bounds as values of the label `le`."""
        return *(f"{bucket:g}" for bucket in self.buckets), "+Inf"


REQUESTS = Family(
    "mlx_responses_http_requests_total",
    "HTTP requests answered, by class of route and of status.",
    labels=("route", "status"),
)
GENERATIONS = Family(
    "mlx_responses_generations_total", "Generations ended, by the status of their response.", labels=("status",)
)
INPUT_TOKENS = Family("mlx_responses_input_tokens_total", "Tokens of the prompts of generations.")
CACHED_TOKENS = Family("mlx_responses_cached_tokens_total", "Prompt tokens found in the prefix cache.")
PROMPT_CACHE_HITS = Family(
    "mlx_responses_prompt_cache_hits_total",
    "Prompts whose beginning was found in a tier of the cache.",
    labels=("tier",),
)
PROMPT_CACHE_MISSES = Family(
    "mlx_responses_prompt_cache_misses_total", "Prompts of which a tier of the cache had nothing.", labels=("tier",)
)
PROMPT_CACHE_TOKENS = Family(
    "mlx_responses_prompt_cache_tokens_total", "Prompt tokens found in a tier of the cache.", labels=("tier",)
)
PROMPT_CACHE_EVICTIONS = Family(
    "mlx_responses_prompt_cache_evictions_total", "Parts of prompts evicted from a tier of the cache.", labels=("tier",)
)
OUTPUT_TOKENS = Family("mlx_responses_output_tokens_total", "Tokens generated.")
DRAFTED_TOKENS = Family("mlx_responses_drafted_tokens_total", "Tokens guessed by speculation and verified.")
ACCEPTED_TOKENS = Family("mlx_responses_accepted_tokens_total", "Guessed tokens that the model chose.")
FIRST_TOKEN = Family(
    "mlx_responses_first_token_seconds",
    "Time from admission to the first token.",
    (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0),
)
DURATION = Family(
    "mlx_responses_duration_seconds",
    "Time from admission to the end of a generation.",
    (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0),
)
JOBS_RECOVERED = Family(
    "mlx_responses_jobs_recovered_total", "Background jobs released from lost workers, for others to resume."
)
STORE_HITS = Family("mlx_responses_store_hits_total", "Stored responses that were retrieved or continued.")
STORE_MISSES = Family(
    "mlx_responses_store_misses_total", "Responses that were to be retrieved or continued, and were not found."
)
STORE_WRITES = Family("mlx_responses_store_writes_total", "Responses stored.")
STORE_EVICTIONS = Family("mlx_responses_store_evictions_total", "Stored responses removed to make room.")
STORE_EXPIRIES = Family("mlx_responses_store_expiries_total", "Expired stored responses removed.")
CONVERSATION_EVICTIONS = Family("mlx_responses_conversation_evictions_total", "Conversations removed to make room.")
CONVERSATION_EXPIRIES = Family("mlx_responses_conversation_expiries_total", "Expired conversations removed.")
STORE_REFUSALS = Family(
    "mlx_responses_store_refusals_total", "Responses that were not stored, or not started, because of a limit."
)

FAMILIES = (
    REQUESTS,
    GENERATIONS,
    INPUT_TOKENS,
    CACHED_TOKENS,
    PROMPT_CACHE_HITS,
    PROMPT_CACHE_MISSES,
    PROMPT_CACHE_TOKENS,
    PROMPT_CACHE_EVICTIONS,
    OUTPUT_TOKENS,
    DRAFTED_TOKENS,
    ACCEPTED_TOKENS,
    FIRST_TOKEN,
    DURATION,
    JOBS_RECOVERED,
    STORE_HITS,
    STORE_MISSES,
    STORE_WRITES,
    STORE_EVICTIONS,
    STORE_EXPIRIES,
    STORE_REFUSALS,
    CONVERSATION_EVICTIONS,
    CONVERSATION_EXPIRIES,
)

LABEL = re.compile(r'(\w+)="([^"]*)"')

_lock = threading.Lock()
_pending: defaultdict[str, float] = defaultdict(float)


def series(name: str, **labels: str) -> str:
    """The name of a series with its labels."""
    text = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return f"{name}{{{text}}}" if text else name


def labels_of(series: str) -> dict[str, str]:
    """The labels in a series' name; their values are fixed, so nothing in them is escaped."""
    return dict(LABEL.findall(series))


def count(family: Family, amount: float = 1, **labels: str) -> None:
    """Add to a counter."""
    with _lock:
        _pending[series(family.name, **labels)] += amount


def observe(family: Family, seconds: float) -> None:
    """Add a value to a histogram: to its bucket, and to the sum."""
    bound = family.bounds[bisect_left(family.buckets, seconds)]
    with _lock:
        _pending[series(family.name + "_bucket", le=bound)] += 1
        _pending[family.name + "_sum"] += seconds


def take_counts() -> dict[str, float]:
    """The counts since the last call. The caller must publish them, or :func:`give_back`."""
    with _lock:
        taken = dict(_pending)
        _pending.clear()
    return taken


def give_back(counts: dict[str, float]) -> None:
    """Undo a :func:`take_counts`."""
    with _lock:
        for name, amount in counts.items():
            _pending[name] += amount

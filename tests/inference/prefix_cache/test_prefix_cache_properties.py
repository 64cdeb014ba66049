"""Random sequences of insertions, look-ups, forgetting and evictions, against a naive model of the cache."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from inference.prefix_cache import states
from inference.prefix_cache.layout import Layout
from inference.prefix_cache.prefix_cache import PrefixCache

from .fakes import BYTES, KINDS, WINDOW, Tokens, check_state, new_state

EDGE = 4
SEQUENCES = st.lists(st.integers(0, 1), min_size=1, max_size=11).map(tuple)
SCOPES = st.sampled_from(["a", "b"])
KEYS = st.sampled_from(["", "k", "l"])
INSERT = st.tuples(st.just("insert"), SCOPES, SEQUENCES, st.integers(WINDOW - 1, 6), KEYS)
FETCH = st.tuples(st.just("fetch"), SCOPES, SEQUENCES, st.just(0), KEYS)
FORGET = st.tuples(st.just("forget"), SCOPES, st.just(()), st.just(0), st.just(""))
OPERATIONS = st.lists(st.one_of(INSERT, INSERT, FETCH), min_size=1, max_size=25)


@contextmanager
def short_edges() -> Iterator[None]:
    with patch.object(states, "EDGE_TOKENS", EDGE):
        yield


def new_cache(kind: str, max_bytes: int) -> PrefixCache:
    return PrefixCache(max_bytes, Layout(new_state(kind, (1,))))


@dataclass
class Boundless:
    """What is known without a bound: prefixes, each as often as it likes."""

    kind: str
    full: set[tuple[str, Tokens]] = field(default_factory=set)
    window: set[tuple[str, Tokens]] = field(default_factory=set)
    snapshots: set[tuple[str, Tokens]] = field(default_factory=set)

    def insert(self, scope: str, tokens: Tokens, tail: int) -> None:
        prefixes = [(scope, tokens[:length]) for length in range(1, len(tokens) + 1)]
        self.full.update(prefixes)
        self.window.update(prefixes[-tail:])
        self.snapshots.add(prefixes[-1])

    def covered(self, scope: str, prompt: Tokens) -> int:
        return max((end for end in range(1, len(prompt)) if self._is_cut(scope, prompt[:end])), default=0)

    def _is_cut(self, scope: str, tokens: Tokens) -> bool:
        layers = KINDS[self.kind]
        window = [(scope, tokens[:end]) for end in range(max(1, len(tokens) - WINDOW + 2), len(tokens) + 1)]
        return (
            (scope, tokens) in self.full
            and ("window" not in layers or self.window.issuperset(window))
            and (not {"recurrent", "list"} & set(layers) or (scope, tokens) in self.snapshots)
        )


@given(kind=st.sampled_from(sorted(KINDS)), operations=OPERATIONS)
def test_without_a_bound_everything_is_found_where_it_can_be_resumed(
    kind: str, operations: list[tuple[str, str, Tokens, int, str]]
) -> None:
    """Also when it is handed over in pieces and the sequences part inside edges."""
    cache, model = new_cache(kind, 10**9), Boundless(kind)
    with short_edges():
        for operation, scope, tokens, tail, key in operations:
            if operation == "insert":
                cache.insert(scope, tokens, new_state(kind, tokens, tail=tail), key=key)
                model.insert(scope, tokens, tail)
            else:
                hit = cache.fetch(scope, tokens, key=key)
                assert hit.covered == model.covered(scope, tokens)
                assert (hit.cache is None) == (hit.covered == 0)
                if hit.cache is not None:
                    check_state(hit.cache, tokens[: hit.covered])
    if kind == "full":
        assert cache.nbytes == BYTES * len(model.full), "what sequences have in common is kept once"


@given(
    kind=st.sampled_from(sorted(KINDS)),
    inserted=st.lists(st.tuples(SCOPES, SEQUENCES, st.sampled_from(["", "r", "s", "t"])), min_size=1, max_size=12),
    releases=st.lists(st.sets(st.sampled_from("rst"), min_size=1), min_size=1, max_size=2),
)
def test_what_is_released_is_dropped_as_far_as_no_other_holder_needs_it(
    kind: str, inserted: list[tuple[str, Tokens, str]], releases: list[set[str]]
) -> None:
    """To the token; what others hold can be resumed as before, and what nobody holds is never released."""
    cache = new_cache(kind, 10**9)
    with short_edges():
        for scope, tokens, holder in inserted:
            cache.insert(scope, tokens, new_state(kind, tokens), holder=holder)
        assert cache.holders == {holder for *_, holder in inserted} - {""}
        for holders in releases:
            cache.release(holders)
            inserted = [entry for entry in inserted if entry[2] not in holders]
            model = Boundless(kind)
            for scope, tokens, _ in inserted:
                model.insert(scope, tokens, WINDOW)
            assert cache.holders == {holder for *_, holder in inserted} - {""}
            if kind == "full":
                assert cache.nbytes == BYTES * len(model.full)
            for scope, tokens, _ in inserted:
                hit = cache.fetch(scope, (*tokens, 9))
                assert hit.covered >= model.covered(scope, (*tokens, 9)) == len(tokens)
                assert hit.cache is not None
                check_state(hit.cache, tokens)
    if not inserted:
        assert cache.nbytes == 0


@dataclass(eq=False)
class NaiveEdge:
    scope: str
    start: int
    tokens: Tokens
    """From the beginning of the sequence to the end of the edge."""
    used: int = 0
    key: str = ""


@dataclass
class Naive:
    """A cache of layers that see every token: a list of edges, which every question goes through."""

    max_bytes: int
    edges: list[NaiveEdge] = field(default_factory=list)
    keys: dict[tuple[str, str], int] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)
    clock: int = 0

    def nbytes(self) -> int:
        return sum(BYTES * (len(edge.tokens) - edge.start) for edge in self.edges)

    def known(self, scope: str, tokens: Tokens) -> int:
        ends = [common(edge.tokens, tokens) for edge in self.edges if edge.scope == scope]
        return max(ends, default=0)

    def path(self, scope: str, tokens: Tokens) -> list[NaiveEdge]:
        return [edge for edge in self.edges if edge.scope == scope and common(edge.tokens, tokens) > edge.start]

    def use(self, scope: str, tokens: Tokens, key: str) -> None:
        self.clock += 1
        for edge in self.path(scope, tokens):
            edge.used, edge.key = self.clock, key or edge.key
        if key:
            self.keys[scope, key] = self.clock

    def fetch(self, scope: str, prompt: Tokens, key: str) -> int:
        covered = min(self.known(scope, prompt), len(prompt) - 1)
        if covered:
            self.use(scope, prompt[:covered], key)
        return covered

    def insert(self, scope: str, tokens: Tokens, key: str) -> None:
        known = self.known(scope, tokens)
        path = self.path(scope, tokens)
        size = BYTES * (len(tokens) - known) + sum(BYTES * (len(edge.tokens) - edge.start) for edge in path)
        if scope in self.forgotten or size > self.max_bytes:
            return
        for edge in path:
            if known < len(edge.tokens) and known < len(tokens):
                self.edges.append(NaiveEdge(scope, edge.start, edge.tokens[:known]))
                edge.start = known
        for start in range(known, len(tokens), EDGE):
            self.edges.append(NaiveEdge(scope, start, tokens[: start + EDGE]))
        self.use(scope, tokens, key)
        while self.nbytes() > self.max_bytes:
            self.evict()

    def evict(self) -> None:
        ends = [
            edge
            for edge in self.edges
            if not any(edge.tokens == other.tokens[: other.start] and edge.scope == other.scope for other in self.edges)
        ]
        scope = min(ends, key=lambda edge: edge.used).scope
        mine = [edge for edge in ends if edge.scope == scope]
        self.edges.remove(min(mine, key=lambda edge: (self.priority(edge), edge.used)))

    def priority(self, edge: NaiveEdge) -> int:
        return self.keys[edge.scope, edge.key] if edge.key else edge.used

    def forget(self, scope: str) -> None:
        self.forgotten.add(scope)
        self.edges = [edge for edge in self.edges if edge.scope != scope]


def common(one: Tokens, other: Tokens) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


@given(operations=st.lists(st.one_of(INSERT, INSERT, FETCH, FETCH, FORGET), max_size=40), room=st.integers(1, 30))
def test_what_is_dropped_is_what_a_naive_cache_would_drop(
    operations: list[tuple[str, str, Tokens, int, str]], room: int
) -> None:
    """The same edges, in the same order, with every byte counted."""
    cache, model = new_cache("full", room * BYTES), Naive(room * BYTES)
    with short_edges():
        for operation, scope, tokens, _, key in operations:
            if operation == "insert":
                cache.insert(scope, tokens, new_state("full", tokens), key=key)
                model.insert(scope, tokens, key)
            elif operation == "forget":
                cache.forget(scope)
                model.forget(scope)
            else:
                hit = cache.fetch(scope, tokens, key=key)
                assert hit.covered == model.fetch(scope, tokens, key)
                if hit.cache is not None:
                    check_state(hit.cache, tokens[: hit.covered])
            assert cache.nbytes == model.nbytes() <= cache.max_bytes


@given(kind=st.sampled_from(sorted(KINDS)), operations=st.lists(st.one_of(INSERT, FETCH, FORGET), max_size=40))
def test_within_a_bound_states_are_whole_or_not_there(
    kind: str, operations: list[tuple[str, str, Tokens, int, str]]
) -> None:
    """Windows and snapshots go by themselves; what is left is right, counted to the byte, and nothing outlives it."""
    cache = new_cache(kind, 400)
    with short_edges():
        for operation, scope, tokens, tail, key in operations:
            if operation == "insert":
                cache.insert(scope, tokens, new_state(kind, tokens, tail=tail), key=key, holder="r")
            elif operation == "forget":
                cache.forget(scope)
            else:
                hit = cache.fetch(scope, tokens, key=key)
                if hit.cache is not None:
                    check_state(hit.cache, tokens[: hit.covered])
            assert cache.nbytes <= cache.max_bytes
    cache.release({"r"})
    assert cache.nbytes == 0

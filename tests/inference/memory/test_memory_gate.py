"""Sequences begin while there is memory, and wait when those before them grow; each ends at some time."""

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from inference.engine.memory_gate import MemoryGate, Stopped
from inference.memory import MemoryBudget, ModelMemory, StateCost
from inference.types import Chunk, GenerationRequest, Sampling

COST = StateCost(layers=((1, None),))
"""A byte per token: 256 for each that has begun."""


def request(name: str, prompt: int = 1, *, priority: int = 0) -> GenerationRequest:
    return GenerationRequest(id=name, prompt=(1,) * prompt, max_tokens=9999, sampling=Sampling(), priority=priority)


class Place:
    """A gate to memory for so many pieces of a state of 256 tokens."""

    def __init__(self, pieces: int) -> None:
        self.budget = MemoryBudget(256 * pieces)
        self.account = self.budget.open_account()
        self.gate = MemoryGate(ModelMemory(account=self.account), COST)

    def generate(self, name: str, tokens: int) -> list[Stopped]:
        chunk = Chunk(request_id=name, tokens=(7,) * tokens)
        assert self.gate.note([chunk]) == [chunk]
        return self.gate.outgrown()

    def end(self, name: str) -> None:
        self.gate.note([Chunk(request_id=name, finish="stop")])
        assert not self.gate.outgrown()


def test_a_sequence_begins_when_there_is_room_for_what_it_has_read() -> None:
    """Each as for the longest, since a batch has room for the longest in every row."""
    place = Place(6)
    assert place.gate.admits(request("a", 255))
    assert place.gate.admits(request("b"))
    assert place.account.state == 2 * 256
    assert place.gate.admits(request("c", 256))
    assert place.account.state == 3 * 512
    assert not place.gate.admits(request("d"))
    assert place.account.lacks > 0
    place.end("c")
    assert place.gate.admits(request("d"))
    assert place.account.lacks == 0
    assert place.account.state == 3 * 256


def test_when_sequences_outgrow_the_memory_the_last_one_waits() -> None:
    """Background before interactive. It is resumed by what it has generated."""
    place = Place(4)
    assert all(place.gate.admits(r) for r in (request("a"), request("job", priority=1), request("c")))
    assert place.generate("c", 5) == []
    ((stopped),) = place.generate("job", 300)
    assert (stopped.request.id, stopped.request.generated, stopped.is_over) == ("job", (7,) * 300, False)
    assert "job" not in place.gate
    assert place.account.state == 2 * 256
    (stopped,) = place.generate("a", 600)
    assert (stopped.request.id, stopped.request.generated) == ("c", (7,) * 5)
    assert place.gate.admits(stopped.request) is False


def test_the_last_one_of_a_model_waits_for_other_models() -> None:
    place = Place(4)
    other = place.budget.open_account()
    assert place.gate.admits(request("a"))
    assert other.reserve_state(3 * 256)
    (stopped,) = place.generate("a", 300)
    assert not stopped.is_over
    assert (place.account.state, place.account.lacks) == (0, 0)
    assert not place.gate.admits(stopped.request)
    assert place.account.lacks == 256
    other.close()
    assert place.gate.admits(stopped.request)


def test_what_never_fits_need_not_wait() -> None:
    """Neither at the beginning nor when it has grown so long."""
    place = Place(2)
    assert place.gate.admits(request("a", 100))
    assert place.gate.admits(request("long", 512))
    assert "long" not in place.gate
    place.end("a")
    assert place.gate.admits(request("b", 511))
    (stopped,) = place.generate("b", 1)
    assert stopped.is_over


def test_what_is_cancelled_while_it_waits_lacks_nothing() -> None:
    place = Place(1)
    assert place.gate.admits(request("a"))
    assert not place.gate.admits(request("b"))
    place.gate.nothing_waits()
    assert place.account.lacks == 0


def test_the_caller_hears_once_that_a_sequence_has_started() -> None:
    """However often it begins; when it has ended, nothing of it is remembered."""
    place = Place(2)
    started, ended = Chunk(request_id="b", started=True), Chunk(request_id="b", finish="cancelled")
    assert all(place.gate.admits(r) for r in (request("a"), request("b")))
    assert place.gate.note([started]) == [started]
    (stopped,) = place.generate("a", 300)
    place.end("a")
    assert place.gate.admits(stopped.request)
    assert place.gate.note([started]) == []
    assert place.gate.note([ended]) == [ended]
    assert place.gate.note([started]) == [started]


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(1, 700), st.integers(1, 900), st.integers(0, 1)), min_size=1, max_size=8),
    st.integers(4, 9),
    st.integers(50, 400),
)
def test_all_end_and_the_reserved_memory_is_never_exceeded(
    sequences: list[tuple[int, int, int]], pieces: int, pace: int
) -> None:
    """Whatever their lengths, as long as each alone has room; none is stopped for ever."""
    place = Place(max(pieces, *(-(-(prompt + tokens + 1) // 256) for prompt, tokens, _ in sequences)))
    waiting = [request(str(n), prompt, priority=priority) for n, (prompt, _, priority) in enumerate(sequences)]
    lengths = {str(number): prompt + tokens for number, (prompt, tokens, _) in enumerate(sequences)}
    running: dict[str, int] = {}
    done: Callable[[GenerationRequest], int] = lambda r: len(r.prompt) + len(r.generated)  # noqa: E731
    for _ in range(400):
        waiting.sort(key=lambda r: (r.priority, int(r.id)))
        while waiting and place.gate.admits(waiting[0]):
            first = waiting.pop(0)
            assert first.id in place.gate
            running[first.id] = done(first)
        assert running, "somebody always runs"
        for name in list(running):
            grown = min(lengths[name] - running[name], pace)
            running[name] += grown
            chunks = [Chunk(request_id=name, tokens=(7,) * grown)]
            if running[name] == lengths[name]:
                chunks.append(Chunk(request_id=name, finish="stop"))
                del running[name]
            place.gate.note(chunks)
        for stopped in place.gate.outgrown():
            assert not stopped.is_over
            assert done(stopped.request) == running.pop(stopped.request.id)
            waiting.append(stopped.request)
        longest = max((length for length in running.values()), default=0)
        assert COST.of(longest, sequences=len(running)) <= place.account.state <= place.budget.total
        if not waiting and not running:
            return
    raise AssertionError("they don't end")

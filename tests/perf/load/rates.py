"""Rates of concurrent streams."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise

from .streams import Stream


def steps_per_second(streams: Sequence[Stream], *, characters_per_token: int) -> float:
    """Tokens a second of each stream while all of them run: from the last first delta to the first end."""
    begin = max(stream.times[0] for stream in streams)
    end = min(stream.times[-1] for stream in streams)
    if end <= begin:
        raise ValueError("the streams never ran all together: make them longer")
    characters = sum(
        len(piece)
        for stream in streams
        for piece in stream.pieces[bisect_right(stream.times, begin) : bisect_right(stream.times, end)]
    )
    return characters / characters_per_token / len(streams) / (end - begin)


def tokens_per_second(streams: Sequence[Stream]) -> float:
    """Output tokens of all streams, divided by the time from the first request to the last end."""
    begin = min(stream.sent for stream in streams)
    return sum(stream.output_tokens for stream in streams) / (max(stream.end for stream in streams) - begin)


def gaps(streams: Sequence[Stream], *, begin: float, end: float) -> list[float]:
    """Seconds between the deltas of each stream in the time from ``begin`` to ``end``."""
    seconds: list[float] = []
    for stream in streams:
        times = stream.times[max(0, bisect_left(stream.times, begin) - 1) : bisect_right(stream.times, end) + 1]
        seconds += [later - earlier for earlier, later in pairwise(times)]
    return seconds


def percentile(values: Sequence[float], percent: float) -> float:
    """A percentile, interpolated between two values."""
    ordered = sorted(values)
    index = (len(ordered) - 1) * percent / 100
    low = int(index)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (index - low)

"""Ends a script's thinking at its limit. Pure, standard library only."""

from collections.abc import Callable, Iterator

from inference.engine.thinking import ThinkingWatch
from inference.scripted.script import Fail
from inference.types import ThinkingLimit


def limited(steps: Iterator[int | Fail], limit: ThinkingLimit, spell: Callable[[int], bytes]) -> Iterator[int | Fail]:
    """The steps of a script without its thinking beyond the limit."""
    watch, end = ThinkingWatch(limit, spell), limit.end.encode()
    for step in steps:
        if isinstance(step, Fail):
            yield step
            return
        forced = watch.forced
        if forced is None:
            watch.add(step)
            yield step
            continue
        while forced is not None:
            watch.add(forced)
            yield forced
            forced = watch.forced
        thought = spell(step)
        while end not in thought:
            skipped = next(steps, None)
            if skipped is None:
                return
            if isinstance(skipped, Fail):
                yield skipped
                return
            thought += spell(skipped)

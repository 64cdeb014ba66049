"""What models thought, for clients that send a turn back without it: rendered as it was made, it hits the prefix cache.

In memory only; all workers of a model tell each other, so that each renders, and counts, alike. The least recently used
goes first. An answer is known by all that was said before it and by what it said itself: ids, and thinking, make no
difference.
"""

import hashlib
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import orjson
from django.conf import settings

from inference.prompts import content_text
from responses_api import bus
from responses_api.bus.messages import RememberThoughts
from responses_api.selectors.models import live_fleet

Item = Mapping[str, Any]
Thought = tuple[str, str]
"""The digest, in hexadecimal, of all up to what was said, and what was thought before that."""

_SAID = ("role", "name", "namespace", "arguments", "input", "output")


class Said:
    """All that was said in a history, as a digest: whoever waits for an answer need not keep the history for it."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._thoughts = ""

    @classmethod
    def of(cls, items: Iterable[Item]) -> "Said":
        """What these items say."""
        said = cls()
        for item in items:
            said.hear(item)
        return said

    def hear(self, item: Item) -> tuple[bytes, str] | None:
        """Take the next item. Of one that the assistant said: a digest of all up to it, and what was thought before."""
        kind = item["type"]
        if kind == "reasoning":
            self._thoughts += content_text(item.get("content") or ())
            return None
        about = {name: item[name] for name in _SAID if item.get(name)}
        if "content" in item:
            about["content"] = content_text(item["content"])
        self._digest.update(orjson.dumps([kind, about], option=orjson.OPT_SORT_KEYS))
        thoughts, self._thoughts = self._thoughts, ""
        is_answer = kind in ("function_call", "custom_tool_call") or item.get("role") == "assistant"
        return (self._digest.digest(), thoughts) if is_answer else None

    def copy(self) -> "Said":
        """The same, to go on from separately."""
        said = Said()
        said._digest, said._thoughts = self._digest.copy(), self._thoughts
        return said


class ReasoningEcho:
    """Guarantees that no scope reads another's, and never more than ``max_bytes`` of text (0: keeps nothing)."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._bytes = 0
        self._texts: OrderedDict[tuple[str, bytes], str] = OrderedDict()  # least recently used first
        self._scopes: Counter[str] = Counter()

    def remember(self, scope: str, history: "Said", output: Sequence[Item]) -> list[Thought]:
        """Keep what was thought before each item of an answer to this history, and return it."""
        answers = filter(None, map(history.copy().hear, output))
        made = [(key.hex(), text) for key, text in answers if text]
        self.keep(scope, made)
        return made

    def keep(self, scope: str, thoughts: Iterable[Thought]) -> None:
        """Keep what was remembered, here or in another worker."""
        for key, text in thoughts:
            self._keep(scope, bytes.fromhex(key), text)

    def restore(self, scope: str, items: Sequence[Item]) -> list[Item]:
        """The items, with what was thought before those that come without."""
        if not self._scopes[scope]:
            return list(items)
        restored, done, said = [], 0, Said()
        for number, item in enumerate(items):
            answer = said.hear(item)
            text = self._find(scope, answer[0]) if answer is not None and not answer[1] else None
            if text is not None:
                restored += [*items[done:number], _reasoning(text)]
                done = number
        return [*restored, *items[done:]]

    def forget(self, scope: str) -> None:
        """Drop all of a cache scope, whichever the model."""
        with self._lock:
            for key in [key for key in self._texts if key[0].startswith(f"{scope}/")]:
                self._drop(key)

    def _find(self, scope: str, key: bytes) -> str | None:
        with self._lock:
            text = self._texts.get((scope, key))
            if text is not None:
                self._texts.move_to_end((scope, key))
            return text

    def _keep(self, scope: str, key: bytes, text: str) -> None:
        size = len(text.encode(errors="replace"))
        with self._lock:
            self._drop((scope, key))
            if size > self._max_bytes:
                return
            self._texts[scope, key] = text
            self._scopes[scope] += 1
            self._bytes += size
            while self._bytes > self._max_bytes:
                self._drop(next(iter(self._texts)))

    def _drop(self, key: tuple[str, bytes]) -> None:
        text = self._texts.pop(key, None)
        if text is not None:
            self._scopes[key[0]] -= 1
            self._bytes -= len(text.encode(errors="replace"))


@cache
def reasoning_echo() -> ReasoningEcho:
    """This process's."""
    return ReasoningEcho(settings.RESPONSES_REASONING_ECHO_MAX_BYTES)


def remember_thinking(*, worker: str, model: str, scope: str, history: "Said", output: Sequence[Item]) -> None:
    """Keep what an answer thought, here and in all other workers of the model."""
    thoughts = reasoning_echo().remember(scope, history, output)
    for other, models in live_fleet().workers:
        if thoughts and other != worker and model in models:
            bus.publish(bus.process_group(other), RememberThoughts(scope=scope, thoughts=tuple(thoughts)))


def echo_scope(cache_scope: str, model: str) -> str:
    """A model's thinking is of no use to another."""
    return f"{cache_scope}/{model}"


def _reasoning(text: str) -> dict[str, Any]:
    return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}]}

"""Remembers models' thinking for clients that send a turn back without it. A prompt that is rendered with it, as it was
generated, hits the prefix cache.

In memory only. The workers of a model share it by messages, so that all render and count the same prompt. The least
recently used texts are dropped first. An answer is identified by its content and that of all items before it, without
ids and thinking.
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
from responses_api.selectors.models import get_live_workers

Item = Mapping[str, Any]
Thought = tuple[str, str]
"""The digest of a history up to and including an answer, in hexadecimal, and the thinking before that answer."""

_FIELDS = ("role", "name", "namespace", "arguments", "input", "output")


class HistoryDigest:
    """The digest of a history, so that the history itself need not stay in memory until its answer."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._thoughts = ""

    @classmethod
    def of(cls, items: Iterable[Item]) -> "HistoryDigest":
        """The digest of these items."""
        digest = cls()
        for item in items:
            digest.add(item)
        return digest

    def add(self, item: Item) -> tuple[bytes, str] | None:
        """Add the next item. For an answer, returns the digest up to it and the thinking before it."""
        kind = item["type"]
        if kind == "reasoning":
            self._thoughts += content_text(item.get("content") or ())
            return None
        content = {name: item[name] for name in _FIELDS if item.get(name)}
        if "content" in item:
            content["content"] = content_text(item["content"])
        self._digest.update(orjson.dumps([kind, content], option=orjson.OPT_SORT_KEYS))
        thoughts, self._thoughts = self._thoughts, ""
        is_answer = kind in ("function_call", "custom_tool_call") or item.get("role") == "assistant"
        return (self._digest.digest(), thoughts) if is_answer else None

    def copy(self) -> "HistoryDigest":
        """An independent copy, to which other items can be added."""
        digest = HistoryDigest()
        digest._digest, digest._thoughts = self._digest.copy(), self._thoughts
        return digest


class ReasoningEcho:
    """Guarantees that no scope reads another's texts, and at most ``max_bytes`` of text (0 disables it)."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._bytes = 0
        self._texts: OrderedDict[tuple[str, bytes], str] = OrderedDict()  # least recently used first
        self._scopes: Counter[str] = Counter()

    def remember(self, scope: str, history: "HistoryDigest", output: Sequence[Item]) -> list[Thought]:
        """Add the thinking before each item of an answer to this history, and return it."""
        answers = filter(None, map(history.copy().add, output))
        thoughts = [(key.hex(), text) for key, text in answers if text]
        self.add(scope, thoughts)
        return thoughts

    def add(self, scope: str, thoughts: Iterable[Thought]) -> None:
        """Add thinking of an answer that was generated here or by another worker."""
        for key, text in thoughts:
            self._add(scope, bytes.fromhex(key), text)

    def restore(self, scope: str, items: Sequence[Item]) -> list[Item]:
        """The items, with reasoning items inserted before answers that came without them."""
        if not self._scopes[scope]:
            return list(items)
        restored, done, digest = [], 0, HistoryDigest()
        for number, item in enumerate(items):
            answer = digest.add(item)
            text = self._find(scope, answer[0]) if answer is not None and not answer[1] else None
            if text is not None:
                restored += [*items[done:number], _reasoning(text)]
                done = number
        return [*restored, *items[done:]]

    def forget(self, scope: str) -> None:
        """Drop all texts of a cache scope, of every model."""
        with self._lock:
            for key in [key for key in self._texts if key[0].startswith(f"{scope}/")]:
                self._drop(key)

    def _find(self, scope: str, key: bytes) -> str | None:
        with self._lock:
            text = self._texts.get((scope, key))
            if text is not None:
                self._texts.move_to_end((scope, key))
            return text

    def _add(self, scope: str, key: bytes, text: str) -> None:
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
    """The instance of this process."""
    return ReasoningEcho(settings.RESPONSES_REASONING_ECHO_MAX_BYTES)


def remember_thinking(*, worker: str, model: str, scope: str, history: "HistoryDigest", output: Sequence[Item]) -> None:
    """Remember the thinking of an answer, here and in all other workers of the model."""
    thoughts = reasoning_echo().remember(scope, history, output)
    for other, models in get_live_workers().workers:
        if thoughts and other != worker and model in models:
            bus.publish(bus.process_group(other), RememberThoughts(scope=scope, thoughts=tuple(thoughts)))


def echo_scope(cache_scope: str, model: str) -> str:
    """The scope of a model's thinking, which other models can't use."""
    return f"{cache_scope}/{model}"


def _reasoning(text: str) -> dict[str, Any]:
    return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}]}

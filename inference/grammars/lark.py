"""Builds Lark text for llguidance. Pure: it doesn't import llguidance."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_SPECIAL_IN_REGEX = re.compile(r"([\\.+*?()|\[\]{}^$/])")
_GUIDANCE = {
    "whitespace_flexible": False,
    "item_separator": ", ",
    "key_separator": ": ",
    "json_allow_general_unicode_escapes": True,
}
"""White space is bounded, so that no schema lets a model pad forever. Any character may be escaped: else a model that
has begun an escape would be forced to another character."""
ANY_TEXT = "(?s:.*)"


def literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def regex(text: str) -> str:
    """A regular expression that matches the text."""
    return _SPECIAL_IN_REGEX.sub(r"\\\1", text).replace("\n", r"\n")


def without(texts: Iterable[str], within: str = f"/{ANY_TEXT}/") -> str:
    """A terminal for what `within` matches and doesn't contain any of the texts."""
    inner = "|".join(map(regex, texts))
    return f"{within} & ~/{ANY_TEXT}(?:{inner}){ANY_TEXT}/" if inner else within


def json_value(schema: Mapping[str, Any]) -> str:
    """A JSON value of the schema, in the form of `json.dumps`."""
    return "%json " + json.dumps({**schema, "x-guidance": _GUIDANCE}, ensure_ascii=False)


def either(choices: Iterable[str]) -> str:
    return " | ".join(choices)


class Grammar:
    """The rules of a grammar. Rules with equal bodies are one rule."""

    def __init__(self, tokens: Mapping[str, int]) -> None:
        """tokens: ids of the special tokens, which no text contains, by their text."""
        self._tokens = tokens
        self._rules: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def __str__(self) -> str:
        return "\n".join(f"{name}: {body}" for name, body in self._rules.items()) + "\n"

    def start(self, body: str) -> None:
        self._rules = {"start": body, **self._rules}

    def rule(self, body: str) -> str:
        return self._add("r", body)

    def terminal(self, body: str) -> str:
        return self._add("T", body)

    def _add(self, prefix: str, body: str) -> str:
        name = self._names.get(body)
        if name is None:
            name = self._names[body] = f"{prefix}{len(self._names)}"
            self._rules[name] = body
        return name

    def is_token(self, text: str) -> bool:
        return text in self._tokens

    def markup(self, text: str) -> str:
        """Markup: special tokens by their ids, the rest as text."""
        if not text:
            return ""
        special = sorted((token for token in self._tokens if token in text), key=len, reverse=True)
        if not special:
            return literal(text)
        parts = re.split(f"({'|'.join(map(re.escape, special))})", text)
        return " ".join(
            f"<[{self._tokens[part]}]>" if part in self._tokens else literal(part) for part in parts if part
        )

    def text(self, *markers: str) -> str:
        """Any text without the markers."""
        return self.terminal(without(marker for marker in markers if not self.is_token(marker)))

    def up_to(self, marker: str, *others: str) -> str:
        """Any text up to and with the first marker, without the others."""
        return self.closed(f"/{ANY_TEXT}/", marker, others)

    def closed(self, inner: str, close: str, others: Sequence[str] = ()) -> str:
        """A match of the terminal `inner`, then `close`; the text before it contains neither `close` nor the others.

        One of the others that is a part of `close` occurs only there.
        """
        others = [other for other in others if not self.is_token(other)]
        if self.is_token(close):
            return f"{self.terminal(without(others, inner))} {self.markup(close)}"
        # Lexemes are as long as possible, so text and its end must be one lexeme, and a lazy one.
        body = f"({inner}) {literal(close)}"
        for text in (close, *(other for other in others if other in close and other != close)):
            behind = len(close) - close.index(text) - len(text)
            body += f" & ~/{ANY_TEXT}{regex(text)}(?s:.{{{behind}}}.+)/"
        body = without((other for other in others if other not in close), body)
        head = self.terminal(body)
        lazy = self._names.setdefault(f"lazy {head}", f"l{len(self._names)}")
        self._rules[f"{lazy}[lazy]"] = head
        return lazy

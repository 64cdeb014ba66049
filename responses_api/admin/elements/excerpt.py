"""The first words of stored items, taken from the head of their JSON text, so that lists never load whole payloads."""

import json
import re

from django.db.models import F, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, StrIndex, Substr

from responses_api.models import Response, TurnItem

HEAD = 700
INPUT = '"input":'
_TEXT = re.compile(r'"text":"((?:[^"\\]|\\.)*)')
_SENT = re.compile(INPUT + r'(?:"|.*?"(?:text|content)":")((?:[^"\\]|\\.)*)', re.DOTALL)
_ROLE = re.compile(r'"role":"(\w+)"')


def with_opening_words(responses: QuerySet[Response]) -> QuerySet[Response]:
    """The responses, each with ``question`` and ``answer``: the heads of its last input item and its first output item.

    An active response has no items yet; its question is taken from its request.
    """
    own = TurnItem.objects.filter(turn=OuterRef("turn")).annotate(head=Substr("item__payload", 1, HEAD)).values("head")
    return responses.annotate(
        question=Coalesce(
            Subquery(own.filter(is_output=False).order_by("-position")[:1]),
            Substr("request", StrIndex(F("request"), Value(INPUT)), HEAD),
        ),
        answer=Subquery(own.filter(is_output=True).order_by("position")[:1]),
    )


def excerpt(head: str | None, length: int) -> str:
    """The beginning of the first text in the head of a payload, or of a request's input; empty when there is none."""
    sent = _SENT.match(head or "")
    words = " ".join((_decoded(sent) if sent else opening_text(head or "")).split())
    return words if len(words) <= length else words[: length - 1].rstrip() + "…"


def opening_text(head: str) -> str:
    """The first text in the head of a payload, cut where the head ends."""
    text = _TEXT.search(head)
    return _decoded(text) if text else ""


def _decoded(match: re.Match[str]) -> str:
    literal = match[1]
    if match.end() == len(match.string):
        # The head may end within an escape, or between the halves of a surrogate pair.
        literal = re.sub(r"(\\u[dD][89abAB][0-9a-fA-F]{2})?(\\u[0-9a-fA-F]{0,3})?$", "", literal)
    try:
        text: str = json.loads(f'"{literal}"', strict=False)
    except ValueError:
        return ""
    return text


def role_of(head: str | None) -> str:
    """The role that a payload's head names; empty when it names none."""
    role = _ROLE.search(head or "")
    return role[1] if role else ""

"""The first words of what is stored, found in the head of its JSON text, so that lists never load whole payloads."""

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
    """The responses, each with ``question`` and ``answer``: the heads of what was sent last, and of what came back.

    One that has not ended has no items yet, but its request.
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
    found = _SENT.match(head or "")
    words = " ".join((_decoded(found) if found else opening_text(head or "")).split())
    return words if len(words) <= length else words[: length - 1].rstrip() + "…"


def opening_text(head: str) -> str:
    """The first text in the head of a payload, as far as the head has it."""
    found = _TEXT.search(head)
    return _decoded(found) if found else ""


def _decoded(found: re.Match[str]) -> str:
    literal = found[1]
    if found.end() == len(found.string):
        # The head may end within an escape, or between the halves of a pair.
        literal = re.sub(r"(\\u[dD][89abAB][0-9a-fA-F]{2})?(\\u[0-9a-fA-F]{0,3})?$", "", literal)
    try:
        text: str = json.loads(f'"{literal}"', strict=False)
    except ValueError:
        return ""
    return text


def role_of(head: str | None) -> str:
    """The role that a payload's head names; empty when it names none."""
    found = _ROLE.search(head or "")
    return found[1] if found else ""

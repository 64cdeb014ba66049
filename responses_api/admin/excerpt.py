"""The first words of a stored item, found in the head of its JSON text, so that lists never load whole payloads."""

import json
import re

from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import Substr

from responses_api.models import Response, TurnItem

HEAD = 700
_TEXT = re.compile(r'"text":"((?:[^"\\]|\\.)*)')
_ROLE = re.compile(r'"role":"(\w+)"')


def with_opening_words(responses: QuerySet[Response]) -> QuerySet[Response]:
    """The responses, each with ``question`` and ``answer``: the heads of what was sent last, and of what came back."""
    own = TurnItem.objects.filter(turn=OuterRef("turn")).annotate(head=Substr("item__payload", 1, HEAD)).values("head")
    return responses.annotate(
        question=Subquery(own.filter(is_output=False).order_by("-position")[:1]),
        answer=Subquery(own.filter(is_output=True).order_by("position")[:1]),
    )


def excerpt(head: str | None, length: int) -> str:
    """The beginning of the first text in the head of a payload; empty when there is none."""
    words = " ".join(opening_text(head or "").split())
    return words if len(words) <= length else words[: length - 1].rstrip() + "…"


def opening_text(head: str) -> str:
    """The first text in the head of a payload, as far as the head has it."""
    found = _TEXT.search(head)
    if found is None:
        return ""
    literal = found[1]
    if found.end() == len(head):
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

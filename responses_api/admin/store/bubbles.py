"""Renders stored items as chat bubbles. Any content becomes a bubble, and none can break the page."""

from dataclasses import dataclass, field
from typing import Any

import orjson
from django.utils.html import format_html
from django.utils.safestring import SafeString

from responses_api.admin.elements.display import file_size, json_block, shorten
from responses_api.admin.elements.excerpt import opening_text, role_of
from responses_api.admin.elements.markup import plain, render_markdown

from .conversation import Place

PAGE_HTML = 1_000_000
"""Most rendered text of a page, in characters; further texts are shortened and unrendered."""
SHORT = 2_000

ROLES = ("user", "assistant", "system", "developer")
LABELS = {
    "function_call": "tool call",
    "function_call_output": "tool output",
    "custom_tool_call": "tool call",
    "custom_tool_call_output": "tool output",
}


@dataclass(slots=True, kw_only=True)
class Bubble:
    """One item on the page."""

    side: str
    """``user``, ``assistant``, ``system`` or ``other``: decides on position and style."""
    label: str
    parts: list[SafeString]
    own: bool = False
    is_output: bool = False
    status: str = ""
    item: int | None = None


@dataclass(slots=True)
class BubbleMaker:
    """Makes a page's bubbles, and limits the size of the page."""

    left: int = field(default=PAGE_HTML)

    def from_place(self, place: Place) -> Bubble:
        """The bubble of a stored item."""
        if place.whole:
            bubble = self.from_text(place.payload, type_=place.type)
        else:
            role = role_of(place.payload)
            parts = [self.text(opening_text(place.payload))] if opening_text(place.payload) else []
            note = f"Only the beginning is shown: this item has {file_size(place.size)}."
            bubble = Bubble(side=side_of(role), label=role or place.type, parts=[*parts, remark(note)])
        bubble.own, bubble.is_output, bubble.item = place.own, place.is_output, place.item
        return bubble

    def from_text(self, payload: str, *, type_: str) -> Bubble:
        """The bubble of an item's JSON text."""
        try:
            value = orjson.loads(payload)
        except orjson.JSONDecodeError:
            value = None
        if not isinstance(value, dict):
            return Bubble(side="other", label=type_, parts=[plain(shorten(payload, SHORT))])
        return self.from_item(value)

    def from_item(self, item: dict[str, Any]) -> Bubble:
        """The bubble of an item in wire form."""
        kind = str(item.get("type") or "message")
        status = str(item.get("status") or "")
        role = item.get("role")
        if kind == "message" and role in ROLES:
            content = item.get("content")
            parts = content if isinstance(content, list) else [content]
            return Bubble(
                side=side_of(role), label=role, parts=[self.part(part) for part in parts], status=unusual(status)
            )
        label = LABELS.get(kind, kind.replace("_", " "))
        name = "::".join(word for word in (item.get("namespace"), item.get("name")) if isinstance(word, str))
        return Bubble(
            side="other",
            label=f"{label}: {name}" if name else label,
            parts=self.of_tools(kind, item) or [json_block(item)],
            status=unusual(status),
        )

    def of_tools(self, kind: str, item: dict[str, Any]) -> list[SafeString]:
        """The parts of a call, an output or a reasoning item; empty for an item of another form."""
        if kind == "function_call" and isinstance(item.get("arguments"), str):
            try:
                return [json_block(orjson.loads(item["arguments"]))]
            except orjson.JSONDecodeError:  # the arguments were cut off
                return [plain(shorten(item["arguments"], SHORT))]
        if kind == "custom_tool_call" and isinstance(item.get("input"), str):
            return [plain(shorten(item["input"], SHORT))]
        if kind in ("function_call_output", "custom_tool_call_output") and "output" in item:
            output = item["output"]
            return [self.part(part) for part in (output if isinstance(output, list) else [output])]
        if kind == "reasoning":
            content = item.get("content")
            thinking = [self.part(part) for part in content] if isinstance(content, list) else []
            sealed = remark("Its text is encrypted.") if item.get("encrypted_content") else remark("It is empty.")
            return thinking or [sealed]
        return []

    def part(self, part: Any) -> SafeString:
        """One part of a message's content."""
        if isinstance(part, str):
            return self.text(part)
        if isinstance(part, dict):
            for name in ("text", "refusal"):
                if isinstance(part.get(name), str):
                    return self.text(part[name])
            if part.get("type") == "input_image":
                return remark(describe_image(part))
        return json_block(part)

    def text(self, text: str) -> SafeString:
        """A text as Markdown while there is room on the page."""
        html = render_markdown(text) if self.left > 0 else plain(shorten(text, SHORT))
        self.left -= len(html)
        return html


def side_of(role: str) -> str:
    """The side of a role's bubbles."""
    if role in ("user", "assistant"):
        return role
    return "system" if role in ROLES else "other"


def unusual(status: str) -> str:
    """The status if it is shown; empty for the usual one."""
    return "" if status in ("", "completed") else status


def remark(text: str) -> SafeString:
    """A sentence of the server, set apart from the content of items."""
    return format_html('<p class="remark">{}</p>', text)


def describe_image(part: dict[str, Any]) -> str:
    """A description of an image, which is not loaded, since that would tell the owner of its URL who looked."""
    url = part.get("image_url")
    if not isinstance(url, str):
        return "An image."
    if url.startswith("data:"):
        return f"An image of {file_size(len(url) * 3 // 4)}, sent with the request."
    return f"An image at {shorten(url, 300)}"

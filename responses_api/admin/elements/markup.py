"""Renders Markdown from models and clients, which are not trusted, to safe HTML.

There are three layers of protection: the parser escapes HTML, its output goes through an allow-list, and the page has a
content security policy. Images are not loaded, since that would tell the owner of their URL who looked.
"""

import nh3
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

RENDERED = 20_000
"""Longest text that is rendered, in characters; longer texts are shown unrendered."""

TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s",
    "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
SCHEMES = {"http", "https", "mailto"}

_parser = (
    MarkdownIt("commonmark", {"html": False, "breaks": True})
    .enable(["table", "strikethrough"])
    .disable(["image", "html_block", "html_inline"])
)


def render_markdown(text: str) -> SafeString:
    """The text as HTML that can't execute, load or style anything. Never fails."""
    if len(text) > RENDERED:
        return plain(text)
    try:
        html = _parser.render(text)
    except (RecursionError, ValueError, IndexError):
        return plain(text)
    return mark_safe(nh3.clean(html, tags=TAGS, attributes=ATTRIBUTES, url_schemes=SCHEMES))


def plain(text: str) -> SafeString:
    """The text unrendered, with its line breaks."""
    return format_html('<pre class="plain">{}</pre>', text)

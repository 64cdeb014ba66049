"""Rewrites regular expressions for JSON strings as llguidance needs them. Pure, standard library only.

llguidance matches a pattern against the string in its JSON form. Where a class contains all control characters it
accepts any escape, also `\\"` and `\\\\` when the class excludes these characters (version 1.9.1).
"""

import re

_CLASS = re.compile(r"\\.|\[\^(\]?(?:\\.|[^\]\\])*+)(\]|)", re.DOTALL)
"""An escape, or a negated class; one without an end is matched too, so that no character is read twice."""
_QUOTE_OR_BACKSLASH = re.compile(r'"|\\\\|\\x(?:22|5[cC])|\\u00(?:22|5[cC])')
_CONTROLS = r"\x00-\x1f"


def for_json_strings(pattern: str) -> str:
    """The pattern without control characters in classes that exclude `"` or a backslash: it matches nothing new.

    Linear in the length of any pattern.
    """

    def narrowed(match: re.Match[str]) -> str:
        excluded = match[1]
        if not match[2] or not _QUOTE_OR_BACKSLASH.search(excluded):
            return match[0]
        first = "\\" if excluded[0] in "]-" else ""  # these are plain characters only in the first place
        return f"[^{_CONTROLS}{first}{excluded}]"

    return _CLASS.sub(narrowed, pattern)

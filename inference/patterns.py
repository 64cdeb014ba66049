"""Regular expressions for JSON strings, as llguidance has to be given them. Pure, standard library only.

llguidance matches a pattern against the string as JSON writes it. Where a class has all control characters it lets any
escape pass, `\\"` and `\\\\` too, also when the class leaves out these very characters (seen with 1.9.1).
"""

import re

_CLASS = re.compile(r"\\.|\[\^((?:\\.|[^\]\\])+)\]", re.DOTALL)
_QUOTE_OR_BACKSLASH = re.compile(r'"|\\\\|\\x(?:22|5[cC])|\\u00(?:22|5[cC])')
_CONTROLS = r"\x00-\x1f"


def for_json_strings(pattern: str) -> str:
    """The pattern without control characters where a class leaves out `"` or a backslash: it matches nothing more."""

    def narrowed(match: re.Match[str]) -> str:
        left_out = match[1]
        if left_out is None or not _QUOTE_OR_BACKSLASH.search(left_out):
            return match[0]
        return f"[^{_CONTROLS}{left_out}]"

    return _CLASS.sub(narrowed, pattern)

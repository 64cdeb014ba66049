"""Regular expressions for JSON strings, as llguidance has to be given them. Pure, standard library only.

llguidance matches a pattern against the string as JSON writes it. Where a class has all control characters it lets any
escape pass, `\\"` and `\\\\` too, also when the class leaves out these very characters (seen with 1.9.1).
"""

import re

_CLASS = re.compile(r"\\.|\[\^(\]?(?:\\.|[^\]\\])*+)(\]|)", re.DOTALL)
"""An escape, or a negated class; one that never closes is a match, too, so that no place is looked at twice."""
_QUOTE_OR_BACKSLASH = re.compile(r'"|\\\\|\\x(?:22|5[cC])|\\u00(?:22|5[cC])')
_CONTROLS = r"\x00-\x1f"


def for_json_strings(pattern: str) -> str:
    """The pattern without control characters where a class leaves out `"` or a backslash: it matches nothing more.

    Linear in the pattern, whatever it is.
    """

    def narrowed(match: re.Match[str]) -> str:
        left_out = match[1]
        if not match[2] or not _QUOTE_OR_BACKSLASH.search(left_out):
            return match[0]
        first = "\\" if left_out[0] in "]-" else ""  # what is a plain character only where it stands first
        return f"[^{_CONTROLS}{first}{left_out}]"

    return _CLASS.sub(narrowed, pattern)

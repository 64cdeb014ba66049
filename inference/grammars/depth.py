"""The depth of a caller's Lark grammar. llguidance walks grammars recursively, and a very deep one ends the process.

Pure. With version 1.9.1 and a stack of 8 MB, 2,000 levels are read and 3,000 cause a segmentation fault.
"""

import re

MAX_DEPTH = 1000
"""Most levels of all rules together, each with the brackets inside: no path through the grammar is longer."""

_PIECE = re.compile(
    r"""(?P<skipped>"(?:\\.|[^"\\\n])*+"?|//[^\n]*|\#[^\n]*|/(?:\\.|[^/\\\n])++/?)
    |(?P<rule>:)|(?P<open>[(\[])|(?P<close>[)\]])""",
    re.VERBOSE,
)


def lark_depth(definition: str) -> int:
    """An upper bound of the nesting of rules, terminals and brackets in a grammar."""
    total = deepest = depth = 0
    for match in _PIECE.finditer(definition):
        if match["rule"]:
            total += deepest + 1
            deepest = depth = 0
        elif match["open"]:
            depth += 1
            deepest = max(deepest, depth)
        elif match["close"]:
            depth -= 1
    return total + deepest

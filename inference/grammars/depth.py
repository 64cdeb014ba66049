"""How deep a caller's Lark grammar nests. llguidance walks a grammar by recursion, and too deep a one ends the process.

Pure. Seen with 1.9.1 on a stack of 8 MB: 2,000 levels are read, 3,000 are a segmentation fault.
"""

import re

MAX_DEPTH = 1000
"""Levels of all rules together, each with the brackets inside it: no path through the grammar is longer."""

_PIECE = re.compile(
    r"""(?P<skipped>"(?:\\.|[^"\\\n])*+"?|//[^\n]*|\#[^\n]*|/(?:\\.|[^/\\\n])++/?)
    |(?P<rule>:)|(?P<open>[(\[])|(?P<close>[)\]])""",
    re.VERBOSE,
)


def lark_depth(definition: str) -> int:
    """An upper bound of the levels in which the rules, terminals and brackets of a grammar stand in each other."""
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

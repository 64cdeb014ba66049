"""A radix tree over tokens, and the positions in it at which a state can be resumed.

Tokens are bytes, four per token, so that an edge of any length is compared by one call of C. What the edges carry is
up to the owner of the tree; the tree itself knows how much of the state each edge covers. Standard library only.
"""

from array import array
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

WIDTH = array("i").itemsize
"""Bytes per token."""

Content = TypeVar("Content")


def pack(tokens: Sequence[int]) -> bytes:
    """Tokens as the tree compares them."""
    return array("i", tokens).tobytes()


class Node(Generic[Content]):
    """An edge of the tree: the tokens from `start` to `end` of all sequences that pass through it."""

    __slots__ = ("children", "content", "end", "has_snapshot", "parent", "start", "tails", "tokens")

    def __init__(
        self, tokens: bytes, *, parent: "Node[Content] | None", tails: Sequence[int], content: Content
    ) -> None:
        self.tokens = tokens
        self.parent = parent
        self.start: int = parent.end if parent is not None else 0
        self.end: int = self.start + len(tokens) // WIDTH
        self.tails = list(tails)
        """For each group of layers, of how many of the last tokens of this edge the state is known."""
        self.has_snapshot = False
        """Whether the state of the layers that can't be cut is known at `end`."""
        self.children: dict[bytes, Node[Content]] = {}
        self.content = content


class TokenTree(Generic[Content]):
    """The prefixes of one scope. The root is an empty edge."""

    def __init__(self, content: Content) -> None:
        self.root: Node[Content] = Node(b"", parent=None, tails=(), content=content)

    def walk(self, tokens: bytes) -> tuple[list[Node[Content]], int]:
        """The edges that begin as `tokens` do, from the root on, and how many tokens they have in common with it.

        The last edge may agree only in part, but in one token at least.
        """
        path: list[Node[Content]] = []
        node, offset = self.root, 0
        while (child := node.children.get(tokens[offset : offset + WIDTH])) is not None:
            path.append(child)
            if not tokens.startswith(child.tokens, offset):
                return path, child.start + _common(child.tokens, tokens[offset : offset + len(child.tokens)])
            node, offset = child, offset + len(child.tokens)
        return path, node.end

    def add(self, parent: Node[Content], tokens: bytes, *, tails: Sequence[int], content: Content) -> Node[Content]:
        """A new edge below `parent`, none of whose children begins with the same token."""
        node = Node(tokens, parent=parent, tails=tails, content=content)
        parent.children[tokens[:WIDTH]] = node
        return node

    def shorten(self, node: Node[Content], end: int) -> None:
        """Let an edge that has none below it end earlier, but not be empty."""
        lost = node.end - end
        node.tokens, node.end = node.tokens[: -lost * WIDTH], end
        node.tails, node.has_snapshot = [max(0, tail - lost) for tail in node.tails], False

    def split(self, node: Node[Content], at: int, *, content: Content) -> Node[Content]:
        """Cut an edge in two at a position inside it. The new edge, above, gets `content`; `node` stays below."""
        assert node.parent is not None
        size = (at - node.start) * WIDTH
        tails = [max(0, tail - (node.end - at)) for tail in node.tails]
        upper = self.add(node.parent, node.tokens[:size], tails=tails, content=content)
        node.parent, node.tokens, node.start = upper, node.tokens[size:], at
        node.tails = [min(tail, node.end - at) for tail in node.tails]
        upper.children[node.tokens[:WIDTH]] = node
        return upper

    def remove(self, node: Node[Content]) -> None:
        """Take out an edge without children."""
        assert node.parent is not None
        assert not node.children
        del node.parent.children[node.tokens[:WIDTH]]

    def nodes(self) -> Iterator[Node[Content]]:
        """All edges, each before those below it."""
        waiting = list(self.root.children.values())
        while waiting:
            node = waiting.pop()
            yield node
            waiting += node.children.values()


def longest_cut(path: Sequence[Node[Content]], limit: int, *, needs: Sequence[int | None], needs_snapshot: bool) -> int:
    """The last position on `path`, at most `limit`, at which a sequence can be resumed; 0 if there is none.

    `needs` says for each group of layers of how many tokens before that position the state must be known, None for all.
    """
    position = limit
    while position > 0:
        if needs_snapshot:
            ends = (node.end for node in reversed(path) if node.has_snapshot and node.end <= position)
            position = next(ends, 0)
        covered = min((_covered(path, position, group, need) for group, need in enumerate(needs)), default=position)
        if covered == position:
            break
        position = covered
    return position


def known_before(path: Sequence[Node[Content]], end: int, group: int) -> int:
    """Of how many tokens before a position on `path` the state of a group is known without a gap."""
    first = end
    for node in reversed(path):
        known = max(node.end - node.tails[group], node.start)
        if known < min(node.end, end):
            first = known
        if node.start < end and known > node.start:
            break
    return end - first


def _covered(path: Sequence[Node[Content]], limit: int, group: int, need: int | None) -> int:
    """The last position, at most `limit`, before which a group's state is known as far back as it needs."""
    end = 0  # of the run of known positions that is being followed upwards; 0 for none
    for node in reversed(path):
        first = node.end - node.tails[group]
        if first >= min(node.end, limit):  # nothing is known of this edge
            end = 0
            continue
        end = end or min(node.end, limit)
        if first == 0 or (need is not None and end - first >= need):
            return end
        if first > node.start:
            end = 0
    return 0


def _common(one: bytes, other: bytes) -> int:
    """How many tokens two sequences have in common from their start on."""
    fewest, most = 0, min(len(one), len(other)) // WIDTH
    while fewest < most:
        middle = (fewest + most + 1) // 2
        if one[fewest * WIDTH : middle * WIDTH] == other[fewest * WIDTH : middle * WIDTH]:
            fewest = middle
        else:
            most = middle - 1
    return fewest

"""The states that are kept in memory: what sequences have in common is kept once."""

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import mlx.core as mx

from inference.prefix_cache.layout import Layout, Snapshot
from inference.prefix_cache.token_tree import WIDTH, Node, TokenTree, longest_cut

EDGE_TOKENS = 512
"""Most tokens of an edge: what is dropped at once, and copied when sequences part inside it."""


@dataclass(slots=True)
class Kept:
    """What an edge of the tree carries."""

    scope: str
    pieces: list[mx.array | None] = field(default_factory=list)
    """For each part of the layout, the state of the last tokens of the edge, as many as its `tails` say."""
    snapshot: Snapshot = field(default_factory=list)
    """The state at the end of the edge of the layers that can't be cut; empty when it isn't known."""
    nbytes: int = 0
    holders: dict[str, int] = field(default_factory=dict)
    """Whose states end on this edge, and where; "" stands for those of nobody. An edge without others below it has at
    least one.
    """
    key: str = ""
    used: int = 0
    """When it was last used, by the clock of `UseOrder`."""
    resumed: int = 0
    """When a sequence was last resumed at its windows or its snapshot."""

    def arrays(self) -> list[mx.array]:
        """All that takes memory."""
        leaves = [leaf for _, leaf in self.snapshot if isinstance(leaf, mx.array)]
        return [*(piece for piece in self.pieces if piece is not None), *leaves]


Edge = Node[Kept]
Path = list[Edge]


class Source(Protocol):
    """A state that is to be kept, of the tokens up to `end`."""

    end: int
    start: int
    """The first token that the layers know that see every token."""
    firsts: Sequence[int]
    """For each group of the layout, the first token that is known."""

    def cut(self, part: int, start: int, end: int) -> mx.array:
        """A copy of the state of some tokens, perhaps not evaluated yet."""

    def snapshot(self) -> Snapshot:
        """The state of the layers that can't be cut; empty when it isn't known."""


class LiveState:
    """The state in the cache of a sequence."""

    def __init__(self, layout: Layout, cache: Sequence[Any], length: int) -> None:
        """Raises ValueError when the cache is not that of so many tokens."""
        self._layout, self._cache = layout, cache
        self.start, self.end = 0, length
        self.firsts: Sequence[int] = layout.first_positions(cache, length)

    def cut(self, part: int, start: int, end: int) -> mx.array:
        return self._layout.cut(self._cache, self._layout.parts[part], start, end)

    def snapshot(self) -> Snapshot:
        return self._layout.snapshot(self._cache)


class States:
    """One tree per scope, and the bytes of all. What can't be evaluated is not kept."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._trees: dict[str, TokenTree[Kept]] = {}
        self.nbytes = 0
        self.holders: Counter[str] = Counter()
        """How many edges each holder has. Any thread may list them."""

    def find(self, scope: str, tokens: bytes) -> tuple[Path, int]:
        """The edges of a scope that begin as `tokens` do, and how many tokens they have in common with it."""
        tree = self._trees.get(scope)
        return tree.walk(tokens) if tree is not None else ([], 0)

    def scopes(self) -> set[str]:
        """Those that have states."""
        return set(self._trees)

    def edges(self, scope: str) -> Iterator[Edge]:
        """All edges of a scope, each before those below it."""
        tree = self._trees.get(scope)
        return tree.nodes() if tree is not None else iter(())

    def longest_cut(self, path: Sequence[Edge], limit: int) -> int:
        """The last position on a path, at most `limit`, at which a sequence can be resumed; 0 if there is none."""
        layout = self._layout
        return longest_cut(path, limit, needs=layout.needs, needs_snapshot=layout.needs_snapshot)

    def cache(self, path: Sequence[Edge], length: int, *, room: int = 0) -> list[Any]:
        """A cache with the state after `length` tokens, at which a sequence can be resumed on `path`, and room for more
        of them.
        """
        path = [node for node in path if node.start < length]
        pieces = [self._gathered(path, part, length) for part in range(len(self._layout.parts))]
        return self._layout.join(pieces, path[-1].content.snapshot, length, room=room)

    def is_resumable(self, node: Edge) -> bool:
        """Whether an edge has windows or a snapshot."""
        return node.has_snapshot or any(
            tail for tail, need in zip(node.tails, self._layout.needs, strict=True) if need is not None
        )

    def is_useless(self, node: Edge) -> bool:
        """Whether nothing can be resumed inside an edge, or at its end."""
        path = [node]
        while (parent := path[-1].parent) is not None and parent.parent is not None:
            path.append(parent)
        return self.longest_cut(path[::-1], node.end) <= node.start

    def add(self, scope: str, tokens: bytes, source: Source) -> tuple[Path, bool]:
        """Keep a state; returns the edges that now lead to its end, and whether it added anything.

        Where the state before `source.start` is not known, it is not added, and there is no path.
        """
        tree = self._trees.get(scope) or TokenTree(Kept(scope))
        path, known = tree.walk(tokens)
        if known < source.start:
            return [], False
        is_new = known < source.end
        if path and known < path[-1].end and (is_new or not self._layout.can_be_cut_anywhere):
            path[-1] = self._split(tree, path[-1], known)
        edges = range(known, source.end, EDGE_TOKENS)
        pieces = [self._pieces(source, start, min(start + EDGE_TOKENS, source.end)) for start in edges]
        mx.eval(pieces)
        for start, arrays in zip(edges, pieces, strict=True):
            edge = tokens[start * WIDTH : min(start + EDGE_TOKENS, source.end) * WIDTH]
            tails = [len(edge) // WIDTH if need is None else 0 for need in self._layout.needs]
            content = Kept(scope, arrays)
            path.append(tree.add(path[-1] if path else tree.root, edge, tails=tails, content=content))
            self._count(content)
        self._trees[scope] = tree
        return path, self._complete(path, source) or is_new

    def drop(self, node: Edge) -> None:
        """Take out an edge that has none below it."""
        scope = node.content.scope
        self._trees[scope].remove(node)
        self.nbytes -= node.content.nbytes
        for holder in list(node.content.holders):
            self._unhold(node, holder)
        if not self._trees[scope].root.children:
            del self._trees[scope]

    def hold(self, path: Sequence[Edge], end: int, holder: str) -> None:
        """The state that ends at `end`, on the last edge of a path, is this holder's, and with it all before it."""
        for node in path[:-1]:
            if holder in node.content.holders:
                self._unhold(node, holder)
        held = path[-1].content.holders
        if holder not in held:
            self.holders[holder] += 1
        held[holder] = max(end, held.get(holder, 0))

    def hold_above(self, node: Edge) -> None:
        """Before an edge is dropped that its holders have not given up: they hold what is above it, if nobody does."""
        above = node.parent
        if above is not None and above.parent is not None and len(above.children) == 1 and not above.content.holders:
            for holder in node.content.holders:
                self.hold([above], above.end, holder)

    def release(self, node: Edge, holders: Container[str]) -> bool:
        """These holders give up their states that end on an edge. Returns whether nobody needs it any more; an edge of
        which somebody needs the beginning is shortened.
        """
        content = node.content
        for holder in [holder for holder in content.holders if holder in holders]:
            self._unhold(node, holder)
        if node.children:
            return False
        end = max(content.holders.values(), default=node.start)
        if node.start < end < node.end:
            self._shorten(node, end)
        return end == node.start

    def drop_windows(self, node: Edge) -> None:
        """Drop the windows and the snapshot of an edge: no sequence is resumed there any more."""
        for number, part in enumerate(self._layout.parts):
            if self._layout.needs[part.group] is not None:
                node.content.pieces[number], node.tails[part.group] = None, 0
        node.content.snapshot, node.has_snapshot = [], False
        self._count(node.content)

    def _gathered(self, path: Sequence[Edge], part: int, length: int) -> list[mx.array]:
        """The arrays that make up the state of one part after `length` tokens."""
        group = self._layout.parts[part].group
        need = self._layout.needs[group]
        first = 0 if need is None else max(0, length - need - 1)  # a window has one token more, if it is known
        arrays: list[mx.array] = []
        for node in reversed(path):
            piece, known = node.content.pieces[part], node.end - node.tails[group]
            if piece is not None:
                start, end = max(first, known) - known, min(node.end, length) - known
                if start < end:
                    arrays.append(piece if end - start == piece.shape[2] else piece[:, :, start:end])
            if node.start <= first or known > node.start:
                break
        return arrays[::-1]

    def _pieces(self, source: Source, start: int, end: int) -> list[mx.array | None]:
        """The state of an edge in the layers that see every token."""
        parts = enumerate(self._layout.parts)
        return [
            source.cut(number, start, end) if self._layout.needs[part.group] is None else None for number, part in parts
        ]

    def _split(self, tree: TokenTree[Kept], node: Edge, at: int) -> Edge:
        """Cut an edge in two; returns the upper one, which the caller is about to use."""
        old, size_below = node.content, node.end - at
        above: list[mx.array | None] = []
        below: list[mx.array | None] = []
        for piece in old.pieces:
            cut = 0 if piece is None else max(0, piece.shape[2] - size_below)
            above.append(mx.contiguous(piece[:, :, :cut]) if piece is not None and cut else None)
            below.append(mx.contiguous(piece[:, :, cut:]) if piece is not None else None)
        mx.eval(above, below)
        content = Kept(old.scope, above)
        upper = tree.split(node, at, content=content)
        old.pieces = below
        content.holders = {holder: end for holder, end in old.holders.items() if end <= at}
        old.holders = {holder: end for holder, end in old.holders.items() if end > at}
        self._count(content)
        self._count(old)
        return upper

    def _shorten(self, node: Edge, end: int) -> None:
        """Cut off the rest of an edge that has none below it."""
        content, lost = node.content, node.end - end
        kept = [0 if piece is None else max(0, piece.shape[2] - lost) for piece in content.pieces]
        content.pieces = [
            mx.contiguous(piece[:, :, :size]) if piece is not None and size else None
            for piece, size in zip(content.pieces, kept, strict=True)
        ]
        mx.eval(content.pieces)
        content.snapshot = []
        self._trees[content.scope].shorten(node, end)
        self._count(content)

    def _complete(self, path: Sequence[Edge], source: Source) -> bool:
        """Add windows and the snapshot to the edges of a path; returns whether there were any."""
        found: list[tuple[Edge, int, int, dict[int, mx.array]]] = []
        for node in path:
            for group, need in enumerate(self._layout.needs):
                tail = node.end - max(node.start, source.firsts[group])
                if need is not None and node.tails[group] < tail and node.end <= source.end:
                    parts = [number for number, part in enumerate(self._layout.parts) if part.group == group]
                    cuts = {number: source.cut(number, node.end - tail, node.end) for number in parts}
                    found.append((node, group, tail, cuts))
        last = path[-1]
        wants_snapshot = self._layout.needs_snapshot and last.end == source.end and not last.has_snapshot
        snapshot = source.snapshot() if wants_snapshot else []
        mx.eval([cuts for *_, cuts in found], [leaf for _, leaf in snapshot])
        for node, group, tail, cuts in found:
            node.tails[group] = tail
            for number, cut in cuts.items():
                node.content.pieces[number] = cut
            self._count(node.content)
        if snapshot:
            last.content.snapshot, last.has_snapshot = snapshot, True
            self._count(last.content)
        return bool(found or snapshot)

    def _unhold(self, node: Edge, holder: str) -> None:
        del node.content.holders[holder]
        self.holders[holder] -= 1
        if not self.holders[holder]:
            del self.holders[holder]

    def _count(self, content: Kept) -> None:
        self.nbytes -= content.nbytes
        content.nbytes = sum(array.nbytes for array in content.arrays())
        self.nbytes += content.nbytes

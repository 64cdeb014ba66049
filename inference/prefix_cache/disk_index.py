"""What the files of one model have, in memory, so that a look-up opens none of them. Any thread may use it."""

import threading
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from inference.prefix_cache.state_file import Stored
from inference.prefix_cache.token_tree import WIDTH, Node, TokenTree, known_before, longest_cut

_Edge = Node[list[Stored]]


class DiskIndex:
    """One tree per scope. Each edge carries the files that know something of it."""

    def __init__(self, *, needs: Sequence[int | None], needs_snapshot: bool) -> None:
        """As a layout has them."""
        self._needs, self._needs_snapshot = needs, needs_snapshot
        self._trees: dict[str, TokenTree[list[Stored]]] = {}
        self._paths: dict[Path, Stored] = {}
        self._lock = threading.Lock()

    def add(self, stored: Stored) -> bool:
        """Note a file; False when what comes before its state is in no file, so that it is of no use."""
        with self._lock:
            tree = self._trees.setdefault(stored.scope, TokenTree([]))
            path, known = tree.walk(stored.tokens)
            if known < stored.start:
                return False
            if path and known < path[-1].end:
                path[-1] = tree.split(path[-1], known, content=list(path[-1].content))
                self._refresh(path[-1])
            if known < stored.end:
                rest = stored.tokens[known * WIDTH :]
                parent = path[-1] if path else tree.root
                path.append(tree.add(parent, rest, tails=[0] * len(self._needs), content=[]))
            first = min((*stored.firsts, stored.end - 1))
            for node in path:
                if node.end > first:
                    node.content.append(stored)
                    self._refresh(node)
            self._paths[stored.path] = stored
            return True

    def discard(self, paths: Iterable[Path]) -> None:
        """These files are gone."""
        with self._lock:
            for stored in [self._paths.pop(path) for path in list(paths) if path in self._paths]:
                tree = self._trees[stored.scope]
                path, _ = tree.walk(stored.tokens)
                for node in reversed(path):
                    node.content = [other for other in node.content if other is not stored]
                    self._refresh(node)
                    if not node.content and not node.children:
                        tree.remove(node)
                if not tree.root.children:
                    del self._trees[stored.scope]

    def discard_scope(self, scope: str) -> None:
        """All files of a scope are gone."""
        with self._lock:
            self._trees.pop(scope, None)
            self._paths = {path: stored for path, stored in self._paths.items() if stored.scope != scope}

    def holders(self) -> set[str]:
        """Those for whom there are files."""
        with self._lock:
            return {stored.holder for stored in self._paths.values()} - {""}

    def held(self, holders: Collection[str]) -> list[Path]:
        """The files that were written for these."""
        with self._lock:
            return [path for path, stored in self._paths.items() if stored.holder in holders]

    def find(self, scope: str, tokens: bytes, limit: int) -> int:
        """The last position, at most `limit`, at which a sequence could be resumed from files; 0 if there is none."""
        with self._lock:
            path, known = self._walk(scope, tokens)
            return longest_cut(path, min(known, limit), needs=self._needs, needs_snapshot=self._needs_snapshot)

    def files(self, scope: str, tokens: bytes, start: int, end: int) -> list[Stored]:
        """The files that are needed to resume at `end` where the state is known up to `start`, first ones first."""
        with self._lock:
            path, _ = self._walk(scope, tokens)
            nodes = [node for node in path if node.end > start and node.start < end]
            found = {stored.path: stored for node in nodes for stored in node.content if stored.end > start}
        return sorted(found.values(), key=lambda stored: (stored.start, stored.end))

    def lacks(self, scope: str, tokens: bytes, tails: Sequence[int], *, snapshot: bool) -> bool:
        """Whether there is more to be known of the end of `tokens` than the files know: of each group of layers, so
        many of the last tokens, and perhaps a snapshot.
        """
        with self._lock:
            path, known = self._walk(scope, tokens)
            if known < len(tokens) // WIDTH:
                return True
            ends_here = path[-1].end == known
            if (snapshot and not (ends_here and path[-1].has_snapshot)) or (self._has_windows(tails) and not ends_here):
                return True
            return any(known_before(path, known, group) < tail for group, tail in enumerate(tails))

    def _has_windows(self, tails: Sequence[int]) -> bool:
        """Whether anything is to be known that counts only at the end of an edge."""
        return any(tail for tail, need in zip(tails, self._needs, strict=True) if need is not None)

    def _walk(self, scope: str, tokens: bytes) -> tuple[list[_Edge], int]:
        tree = self._trees.get(scope)
        return tree.walk(tokens) if tree is not None else ([], 0)

    def _refresh(self, node: _Edge) -> None:
        whole = [stored for stored in node.content if stored.end >= node.end]
        node.tails = [
            max((node.end - max(node.start, stored.firsts[group]) for stored in whole), default=0)
            for group in range(len(self._needs))
        ]
        node.tails = [max(0, tail) for tail in node.tails]
        node.has_snapshot = any(stored.has_snapshot and stored.end == node.end for stored in whole)

"""Which of the kept states goes first when there is no room."""

from collections import Counter, OrderedDict
from collections.abc import Sequence

from inference.prefix_cache.states import Edge, States


class UseOrder:
    """The least recently used goes first, its end before its beginning. States that a scope uses under one key are as
    recent as the one of them that was used last; that changes the order within this scope alone.
    """

    def __init__(self, states: States) -> None:
        self._states = states
        self._edges: OrderedDict[Edge, None] = OrderedDict()
        """The least recently used first. An edge comes before those above it: the first has none below."""
        self._resumable: OrderedDict[Edge, None] = OrderedDict()
        """Those with windows or a snapshot, the least recently resumed first."""
        self._keys: dict[str, dict[str, int]] = {}
        """By scope, when the states of each key were last used."""
        self._edges_of_key: Counter[tuple[str, str]] = Counter()
        self._clock = 0
        self.evictions = 0

    def use(self, path: Sequence[Edge], *, window: int, key: str) -> None:
        """The state at the end of a path is used; `window` is how many tokens before the end its widest window has."""
        self._clock += 1
        end = path[-1].end
        for node in reversed(path):
            node.content.used = self._clock
            self._edges[node] = None
            self._edges.move_to_end(node)
            if key and node.content.key != key:
                self._leave_key(node)
                self._edges_of_key[node.content.scope, key] += 1
                node.content.key = key
            if (node.end == end or node.end > end - window) and self._states.is_resumable(node):
                node.content.resumed = self._clock
                self._resumable[node] = None
                self._resumable.move_to_end(node)
        if key:
            self._keys.setdefault(path[-1].content.scope, {})[key] = self._clock

    def drop_oldest(self) -> None:
        """Drop the least recently used edge, or the windows and the snapshot of one that others continue."""
        self.evictions += 1
        node = next(iter(self._edges))
        resumable = next(iter(self._resumable), None)
        if resumable is not None and resumable.children and resumable.content.resumed < node.content.used:
            self._states.drop_windows(resumable)
            del self._resumable[resumable]
            return
        node = self._preferred(node)
        parent = node.parent
        self._evict(node)
        while parent is not None and parent.parent is not None and self._is_left_over(parent):
            node, parent = parent, parent.parent
            self._evict(node)

    def drop(self, node: Edge) -> None:
        """Drop an edge that has none below it."""
        self._states.drop(node)
        del self._edges[node]
        self._resumable.pop(node, None)
        self._leave_key(node)

    def _evict(self, node: Edge) -> None:
        self._states.hold_above(node)
        self.drop(node)

    def _preferred(self, node: Edge) -> Edge:
        """The edge to drop instead of the least recently used one, in the same scope."""
        scope = node.content.scope
        keys = self._keys.get(scope)
        if keys is None:
            return node
        ends = (edge for edge in self._states.edges(scope) if not edge.children)
        return min(ends, key=lambda end: (keys.get(end.content.key, end.content.used), end.content.used))

    def _is_left_over(self, node: Edge) -> bool:
        return not node.children and self._states.is_useless(node)

    def _leave_key(self, node: Edge) -> None:
        scope, key = node.content.scope, node.content.key
        if not key:
            return
        self._edges_of_key[scope, key] -= 1
        if not self._edges_of_key[scope, key]:
            del self._edges_of_key[scope, key], self._keys[scope][key]
            if not self._keys[scope]:
                del self._keys[scope]

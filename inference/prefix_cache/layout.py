"""How the attention state of a model is cut into pieces and joined again.

Layers are of three kinds. Full attention (KVCache) has keys and values for every token: any piece of them is worth
something. A sliding window (RotatingKVCache) has those of the last tokens: it can be resumed where as many are known as
the window is wide. Whatever else there is, such as the state of recurrent layers (ArraysCache), is only known as a
whole, at the position where a snapshot of it was taken.
"""

import json
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import mlx.core as mx
from mlx.utils import tree_flatten, tree_unflatten
from mlx_lm.models import cache as _untyped

mlx_lm: Any = _untyped

Place = tuple[int, ...]
"""Where a layer is in a model's cache; more than one number inside a CacheList."""
Snapshot = list[tuple[str, Any]]
"""The state of the layers that can't be cut, by place: arrays, and what else they have."""


@dataclass(frozen=True, slots=True)
class Part:
    """The keys or the values of one layer, tokens along axis 2."""

    place: Place
    name: str
    group: int


class Layout:
    """The layers of one model. The same for all of its states."""

    def __init__(self, cache: Sequence[Any]) -> None:
        """cache: any cache of the model. Raises ValueError when it has layers of an unknown kind."""
        self._structure = _structure(cache)
        windows: dict[int | None, int] = {}
        self.parts: list[Part] = []
        """In the order of the arrays of a piece."""
        self._windows: dict[Place, int | None] = {}
        self._snapshots: dict[Place, type[Any]] = {}
        for place in _places(self._structure):
            layer = _layer(cache, place)
            if type(layer) is mlx_lm.KVCache or (type(layer) is mlx_lm.RotatingKVCache and layer.keep == 0):
                window = layer.max_size if type(layer) is mlx_lm.RotatingKVCache else None
                group = windows.setdefault(window, len(windows))
                self._windows[place] = window
                self.parts += [Part(place, "keys", group), Part(place, "values", group)]
            elif hasattr(type(layer), "from_state"):
                self._snapshots[place] = type(layer)
            else:
                raise ValueError(f"states of {type(layer).__name__} can't be kept")
        self.needs: list[int | None] = [None if window is None else window - 1 for window in windows]
        """For each group, of how many tokens before a position the state is needed there; None for all."""
        self.needs_snapshot = bool(self._snapshots)

    @classmethod
    def of_model(cls, model: Any) -> "Layout | None":
        """The layout of a model's states; None when they can't be kept."""
        try:
            return cls(mlx_lm.make_prompt_cache(model))
        except ValueError:
            return None

    def signature(self, model: Any) -> str:
        """What tells this model's states from others: the kinds, shapes and types of its arrays, and mlx-lm's version.
        Reads one token.
        """
        cache = mlx_lm.make_prompt_cache(model)
        model(mx.array([[0]]), cache=cache)
        arrays = [(part.place, part.name, self.needs[part.group], self.cut(cache, part, 0, 1)) for part in self.parts]
        described = [(place, name, need, array.shape, str(array.dtype)) for place, name, need, array in arrays]
        leaves = [
            (name, getattr(leaf, "shape", leaf), str(getattr(leaf, "dtype", ""))) for name, leaf in self.snapshot(cache)
        ]
        return json.dumps([version("mlx-lm"), described, leaves])

    @property
    def can_be_cut_anywhere(self) -> bool:
        """Whether a state can be resumed at every position before its end."""
        return not self.needs_snapshot and all(need is None for need in self.needs)

    def first_positions(self, cache: Sequence[Any], length: int) -> list[int]:
        """For each group, the first token whose keys and values are in the cache of a sequence of `length` tokens.

        Raises ValueError when the cache is of another length.
        """
        firsts = [0] * len(self.needs)
        for part in self.parts:
            layer = _layer(cache, part.place)
            if layer.empty() or layer.offset != length:
                raise ValueError("the state doesn't belong to these tokens")
            if self.needs[part.group] is not None:
                firsts[part.group] = max(firsts[part.group], length - _in_order(layer, part.name).shape[2])
        return firsts

    def cut(self, cache: Sequence[Any], part: Part, start: int, end: int) -> mx.array:
        """An own copy, not evaluated yet, of the state of the tokens from `start` to `end`."""
        layer = _layer(cache, part.place)
        tokens = _in_order(layer, part.name)
        first = layer.offset - tokens.shape[2]
        return mx.contiguous(tokens[:, :, start - first : end - first])

    def snapshot(self, cache: Sequence[Any]) -> Snapshot:
        """The state of the layers that can't be cut, its arrays not evaluated yet."""
        leaves: Snapshot = []
        for place in self._snapshots:
            flat: Any = tree_flatten(_layer(cache, place).state)
            leaves += [(_name(place) + key, leaf) for key, leaf in flat]
        return [(name, mx.contiguous(leaf) if isinstance(leaf, mx.array) else leaf) for name, leaf in leaves]

    def join(
        self, pieces: Sequence[Sequence[mx.array]], snapshot: Snapshot, length: int, *, room: int = 0
    ) -> list[Any]:
        """A cache of a sequence of `length` tokens, not evaluated yet; `pieces` are those of each part, in order.

        Layers that see every token have room for at least `room` more, so that reading these copies nothing. A window
        has at most as many tokens as it is wide, and at least one fewer.
        """
        free = -(length + room) % mlx_lm.KVCache.step + room
        layers: dict[Place, Any] = {}
        for part, arrays in zip(self.parts, pieces, strict=True):
            window = self._windows[part.place]
            layer = layers.get(part.place)
            if layer is None:
                layer = layers[part.place] = mlx_lm.KVCache() if window is None else mlx_lm.RotatingKVCache(window)
                layer.offset = length
            size = sum(piece.shape[2] for piece in arrays)
            if window is not None and size < min(window, length):
                # The oldest token of a full window is read by nobody, but mlx-lm wants it there.
                arrays = [mx.zeros_like(arrays[0][:, :, :1]), *arrays]
            if window is None and free:
                heads, _, width = arrays[0].shape[1:]
                arrays = [*arrays, mx.zeros((1, heads, free, width), arrays[0].dtype)]
            setattr(layer, part.name, _shared(arrays[0]) if len(arrays) == 1 else mx.concatenate(list(arrays), axis=2))
            if window is not None:
                layer._idx = layer.keys.shape[2]
        for place, kind in self._snapshots.items():
            name = _name(place)
            leaves = [(key.removeprefix(name), _shared(leaf)) for key, leaf in snapshot if key.startswith(name)]
            layers[place] = kind.from_state(tree_unflatten(leaves))
        return _filled(self._structure, layers)


def _structure(cache: Sequence[Any], above: Place = ()) -> list[Any]:
    """The places of all layers, nested as the layers are."""
    places = ((*above, number) for number in range(len(cache)))
    return [
        _structure(layer.caches, place) if isinstance(layer, mlx_lm.CacheList) else place
        for place, layer in zip(places, cache, strict=True)
    ]


def _places(structure: list[Any]) -> Iterator[Place]:
    for entry in structure:
        yield from _places(entry) if isinstance(entry, list) else (entry,)


def _filled(structure: list[Any], layers: dict[Place, Any]) -> list[Any]:
    return [
        mlx_lm.CacheList(*_filled(entry, layers)) if isinstance(entry, list) else layers[entry] for entry in structure
    ]


def _name(place: Place) -> str:
    """A place in the keys of a snapshot."""
    return ".".join(map(str, place)) + "/"


def _layer(cache: Sequence[Any], place: Place) -> Any:
    layer = cache[place[0]]
    for number in place[1:]:
        layer = layer[number]
    return layer


def _in_order(layer: Any, name: str) -> mx.array:
    """The keys or values that a layer has, oldest first, without unused room."""
    array: mx.array = getattr(layer, name)
    return layer._temporal_order(array) if isinstance(layer, mlx_lm.RotatingKVCache) else array[:, :, : layer.offset]


def _shared(leaf: Any) -> Any:
    """The same array under another name: who changes it in place doesn't change what is kept."""
    return copy(leaf) if isinstance(leaf, mx.array) else leaf

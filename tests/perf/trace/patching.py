"""Replaces functions of modules as these are imported."""

import functools
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any

from .points import Point

Patch = tuple[Point, Callable[[Any, str], Any]]
"""A function to replace, and a factory of its replacement, which gets the function and the point's cause."""


def patch_on_import(patches: Iterable[Patch]) -> None:
    """Replace these functions in this process from now on."""
    sys.meta_path.insert(0, _Finder(patches))


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of the patches as Python does, with a loader that also patches them."""

    def __init__(self, patches: Iterable[Patch]) -> None:
        self._patches: dict[str, list[Patch]] = {}
        for patch in patches:
            self._patches.setdefault(patch[0].module, []).append(patch)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of a module with patches; None for all others."""
        if name not in self._patches:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_patch(module: ModuleType) -> None:
            execute(module)
            self._patch(module)

        spec.loader.exec_module = execute_and_patch  # type: ignore[method-assign]
        return spec

    def _patch(self, module: ModuleType) -> None:
        """Raises AttributeError for a name that the module doesn't have."""
        for point, wrap in self._patches[module.__name__]:
            *path, name = point.name.split(".")
            owner = functools.reduce(getattr, path, module)
            setattr(owner, name, wrap(getattr(owner, name), point.cause))

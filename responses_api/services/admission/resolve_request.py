"""Resolves what a checked request names: the model, the stored history that it continues, the items of its input."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic

from responses_api.caller import Caller
from responses_api.selectors.models import LiveModel, resolve_model
from responses_api.services.prompts.assemble_history import Assembly, assembling

from .find_history import History, find_history
from .take_input import Request, take_input


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution(Generic[Request]):
    """The model and the history of a request. Its input is resolved last, when its limits are known."""

    served: LiveModel
    history: History
    assembly: Assembly
    """Accounts for the bytes that are read for the request."""
    _caller: Caller
    _request: Request
    _payload: dict[str, Any]

    def take_input(self, *, refuse: Callable[[int], None] | None = None) -> tuple[Request, dict[str, Any]]:
        """The request and its body without references: see :func:`take_input`."""
        return take_input(
            caller=self._caller,
            request=self._request,
            payload=self._payload,
            assembly=self.assembly,
            history=self.history.size,
            refuse=refuse,
        )


@contextmanager
def resolving(*, caller: Caller, request: Request, payload: dict[str, Any]) -> Iterator[Resolution[Request]]:
    """Resolve what the request names. The bytes that are read for it count until the block ends.

    Raises an :class:`ApiError` for an unknown model or history.
    """
    served = resolve_model(request.model)
    history = find_history(caller=caller, request=request)
    with assembling(caller.scope) as assembly:
        yield Resolution(
            served=served, history=history, assembly=assembly, _caller=caller, _request=request, _payload=payload
        )

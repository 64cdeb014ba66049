"""The body of a request, in memory no longer than it is needed."""

from collections.abc import Callable
from typing import Any

from responses_api.errors import ApiError


class RequestBody:
    """The JSON value of a request's body, or the error of parsing it."""

    def __init__(self, value: Any = None, *, release: Callable[[], None] = lambda: None) -> None:
        self._value = value
        self._release = release

    def put(self, value: Any) -> None:
        """Set the result of parsing the body: a JSON value or an :class:`ApiError`."""
        self._value = value

    def value(self) -> Any:
        """The JSON value. Raises the :class:`ApiError` that parsing the body gave."""
        if isinstance(self._value, ApiError):
            raise self._value
        return self._value

    def asks_for(self, option: str) -> bool:
        """Whether the body is an object in which this option is true, such as `stream` or `background`."""
        return isinstance(self._value, dict) and self._value.get(option) is True

    def forget(self) -> None:
        """Release the value once the request is admitted: the answer may take long, and doesn't need it."""
        self._value = None
        self._release()

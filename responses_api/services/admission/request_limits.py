"""Limits on the size of one request, checked before its row is written."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from responses_api.errors import InvalidRequest, RequestTooLarge
from responses_api.services.store.store_admission import (
    refuse_large_echo,
    refuse_too_large,
    refuse_what_will_be_too_large,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """The size limits of one request. All sizes are bytes; each method raises an :class:`ApiError` beyond a limit."""

    store: bool
    background: bool
    history: int
    """Size of the stored history that the request continues."""

    def check_references(self, size: int) -> None:
        """Check the total size of all referenced items, before any of them is loaded."""
        if self.background:
            self._check_job(size)
        if self._is_stored:
            refuse_too_large(self.history + size, background=self.background)

    def check_request(self, *, body: Mapping[str, Any], body_size: int, payload: dict[str, Any], size: int) -> None:
        """Check the object without output and the request; ``payload`` is the request with its references resolved."""
        refuse_large_echo(body, body_size)
        if self.background:
            self._check_job(size)
        if self._is_stored:
            refuse_what_will_be_too_large(
                history=self.history, body=body_size, request=size, payload=payload, background=self.background
            )

    @property
    def _is_stored(self) -> bool:
        """Whether the response will be stored; a job is always stored, if only for a while."""
        return self.store or self.background

    def _check_job(self, size: int) -> None:
        """Raise a 400 for `store: false` where jobs must be stored, a 413 for a job whose request is too large."""
        if settings.RESPONSES_BACKGROUND_REQUIRES_STORE and not self.store:
            raise InvalidRequest(
                "On this server a background response must be stored (RESPONSES_BACKGROUND_REQUIRES_STORE). Send "
                "`store: true`, or leave `background` out.",
                param="store",
            )
        limit = settings.RESPONSES_BACKGROUND_INPUT_MAX_BYTES
        if size > limit:
            raise RequestTooLarge(
                f"The request has {size} bytes, and that of a background response may have {limit} "
                "(RESPONSES_BACKGROUND_INPUT_MAX_BYTES). Shorten the input, or leave `background` out.",
                param="input",
            )

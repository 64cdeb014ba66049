"""The exceptions that become errors for clients, as one tree.

    ApiError
    ├── InvalidRequest                  400  (code null)
    │   ├── InvalidValue                     invalid_value
    │   ├── MissingParameter                 missing_required_parameter
    │   ├── UnknownParameter                 unknown_parameter
    │   ├── UnsupportedParameter             unsupported_parameter
    │   ├── InvalidJson                      invalid_json
    │   ├── ContextLengthExceeded            context_length_exceeded
    │   └── PreviousResponseNotFound         previous_response_not_found
    ├── AuthenticationFailed            401  invalid_api_key
    ├── PermissionDenied                403  insufficient_permissions
    ├── NotFound                        404  not_found
    │   └── ModelNotFound                    model_not_found
    ├── MethodNotAllowed                405  method_not_allowed, with `Allow`
    ├── RequestTimeout                  408  request_timeout
    ├── Conflict                        409  (code null), never worth a retry
    │   ├── ResponseInProgress               response_in_progress
    │   └── StreamNotAvailable               stream_not_available
    ├── CursorExpired                   410  cursor_expired
    ├── RequestTooLarge                 413  request_too_large
    │   └── EntryTooLarge                    entry_too_large
    ├── UnsupportedMediaType            415  unsupported_media_type
    ├── RateLimited                     429  rate_limit_exceeded, with `Retry-After`
    │   └── InsufficientQuota                insufficient_quota, never worth a retry
    └── ServerError                     500  server_error
        └── Overloaded                  503  server_overloaded, with `Retry-After`

A class sets status, type and code; an instance adds the message (whole sentences that name the field and the remedy),
the parameter's path and headers. OpenAI's SDKs retry 409, 429 and 5xx by themselves: where a retry can't help, the
header `x-should-retry: false` stops them. Instances can be pickled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from typing_extensions import TypedDict


class ErrorBody(TypedDict):
    """The error and its remedy."""

    message: str
    type: str
    param: str | None
    code: str | None


class Error(TypedDict):
    """The envelope of every error."""

    error: ErrorBody


NO_RETRY: Mapping[str, str] = {"x-should-retry": "false"}


MAX_SHOWN = 200


def shown(text: str) -> str:
    """A caller's text as messages quote it: its first 200 characters."""
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"


class ApiError(Exception):
    """An error with its HTTP status, type and code. Raise a subclass."""

    status: ClassVar[int] = 500
    type: ClassVar[str] = "server_error"
    code: str | None = None
    default_headers: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        if code is not None:
            self.code = code
        self.headers: dict[str, str] = {**self.default_headers, **(headers or {})}

    def envelope(self) -> Error:
        """The JSON body of the answer."""
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}


class InvalidRequest(ApiError):
    """400: the request is invalid."""

    status = 400
    type = "invalid_request_error"


class InvalidValue(InvalidRequest):
    code = "invalid_value"


class MissingParameter(InvalidRequest):
    code = "missing_required_parameter"


class UnknownParameter(InvalidRequest):
    code = "unknown_parameter"


class UnsupportedParameter(InvalidRequest):
    """A parameter or value of the API that this server does not support."""

    code = "unsupported_parameter"


class InvalidJson(InvalidRequest):
    code = "invalid_json"


class ContextLengthExceeded(InvalidRequest):
    code = "context_length_exceeded"


class PreviousResponseNotFound(InvalidRequest):
    """The same answer for unknown, expired and deleted ids and for other projects', so that it discloses nothing."""

    code = "previous_response_not_found"

    @classmethod
    def for_id(cls, response_id: str) -> PreviousResponseNotFound:
        name = shown(response_id)
        message = f"Previous response with id '{name}' not found. Send the id of a response that is still stored."
        return cls(message, param="previous_response_id")


class AuthenticationFailed(ApiError):
    """401: the same answer for a missing key and for every kind of bad key."""

    status = 401
    type = "authentication_error"
    code = "invalid_api_key"
    default_headers: ClassVar[Mapping[str, str]] = {"WWW-Authenticate": "Bearer"}


class PermissionDenied(ApiError):
    status = 403
    type = "permission_error"
    code = "insufficient_permissions"


class NotFound(ApiError):
    """404: the same answer for unknown, expired, deleted and other projects' ids, so that it discloses nothing."""

    status = 404
    type = "invalid_request_error"
    code = "not_found"

    @classmethod
    def response(cls, response_id: str) -> NotFound:
        return cls(f"Response with id '{shown(response_id)}' not found. It is unknown, expired or deleted.")


class ModelNotFound(NotFound):
    code = "model_not_found"

    @classmethod
    def for_name(cls, name: str) -> ModelNotFound:
        name = shown(name)
        message = f"The model '{name}' does not exist or you do not have access to it. GET /v1/models lists the models."
        return cls(message, param="model")


class MethodNotAllowed(ApiError):
    status = 405
    type = "invalid_request_error"
    code = "method_not_allowed"

    @classmethod
    def for_method(cls, method: str, allowed: Iterable[str]) -> MethodNotAllowed:
        allow = ", ".join(allowed)
        return cls(f"This address does not take {method}. Use {allow}.", headers={"Allow": allow})


class RequestTimeout(ApiError):
    """408: the body came too slowly."""

    status = 408
    type = "invalid_request_error"
    code = "request_timeout"


class Conflict(ApiError):
    """409: the resource's state forbids it, and an immediate retry can't help."""

    status = 409
    type = "conflict_error"
    default_headers = NO_RETRY


class ResponseInProgress(Conflict):
    code = "response_in_progress"

    @classmethod
    def for_status(
        cls, response_id: str, status: str, *, background: bool, param: str | None = None
    ) -> ResponseInProgress:
        end = "cancel it" if background else "close the connection of its request"
        message = f"Response '{response_id}' is still running (status '{status}'). Wait until it ends, or {end}."
        return cls(message, param=param)


class StreamNotAvailable(Conflict):
    code = "stream_not_available"


class CursorExpired(ApiError):
    status = 410
    type = "invalid_request_error"
    code = "cursor_expired"


class RequestTooLarge(ApiError):
    status = 413
    type = "invalid_request_error"
    code = "request_too_large"


class EntryTooLarge(RequestTooLarge):
    code = "entry_too_large"
    default_headers = NO_RETRY


class UnsupportedMediaType(ApiError):
    """415: by its headers, the body is not of a kind that this server reads."""

    status = 415
    type = "invalid_request_error"
    code = "unsupported_media_type"


class _RetryLater(ApiError):
    """Carries `Retry-After`, in whole seconds, unless a retry can't help."""

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
        retry_after: int = 1,
    ) -> None:
        super().__init__(message, param=param, code=code, headers=headers)
        if "x-should-retry" not in self.headers:
            self.headers.setdefault("Retry-After", str(retry_after))


class RateLimited(_RetryLater):
    status = 429
    type = "rate_limit_error"
    code = "rate_limit_exceeded"


class InsufficientQuota(RateLimited):
    code = "insufficient_quota"
    default_headers = NO_RETRY


class ServerError(ApiError):
    """500: an error of the server's own. The message discloses no internals."""

    status = 500
    type = "server_error"
    code = "server_error"


class Overloaded(_RetryLater, ServerError):
    status = 503
    code = "server_overloaded"

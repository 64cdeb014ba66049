"""The error classes answer with the status, type and code of the contract."""

import pickle

import pytest

from responses_api import errors

TABLE = [
    (errors.InvalidRequest, 400, "invalid_request_error", None),
    (errors.InvalidValue, 400, "invalid_request_error", "invalid_value"),
    (errors.MissingParameter, 400, "invalid_request_error", "missing_required_parameter"),
    (errors.UnknownParameter, 400, "invalid_request_error", "unknown_parameter"),
    (errors.UnsupportedParameter, 400, "invalid_request_error", "unsupported_parameter"),
    (errors.InvalidJson, 400, "invalid_request_error", "invalid_json"),
    (errors.ContextLengthExceeded, 400, "invalid_request_error", "context_length_exceeded"),
    (errors.PreviousResponseNotFound, 400, "invalid_request_error", "previous_response_not_found"),
    (errors.AuthenticationFailed, 401, "authentication_error", "invalid_api_key"),
    (errors.PermissionDenied, 403, "permission_error", "insufficient_permissions"),
    (errors.NotFound, 404, "invalid_request_error", "not_found"),
    (errors.ModelNotFound, 404, "invalid_request_error", "model_not_found"),
    (errors.MethodNotAllowed, 405, "invalid_request_error", "method_not_allowed"),
    (errors.ResponseInProgress, 409, "conflict_error", "response_in_progress"),
    (errors.StreamNotAvailable, 409, "conflict_error", "stream_not_available"),
    (errors.CursorExpired, 410, "invalid_request_error", "cursor_expired"),
    (errors.RequestTooLarge, 413, "invalid_request_error", "request_too_large"),
    (errors.EntryTooLarge, 413, "invalid_request_error", "entry_too_large"),
    (errors.RateLimited, 429, "rate_limit_error", "rate_limit_exceeded"),
    (errors.InsufficientQuota, 429, "rate_limit_error", "insufficient_quota"),
    (errors.ServerError, 500, "server_error", "server_error"),
    (errors.Overloaded, 503, "server_error", "server_overloaded"),
]


@pytest.mark.parametrize(("cls", "status", "type_", "code"), TABLE, ids=lambda value: getattr(value, "__name__", None))
def test_class_fixes_status_type_and_code(
    cls: type[errors.ApiError], status: int, type_: str, code: str | None
) -> None:
    """The instance adds message and param; pickling keeps everything."""
    error = cls("Say what is wrong.", param="input[0]")
    assert error.status == status
    body = {"message": "Say what is wrong.", "type": type_, "param": "input[0]", "code": code}
    assert error.envelope() == {"error": body}
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.envelope(), copy.headers) == (cls, error.envelope(), error.headers)


def test_headers_tell_whether_a_retry_helps() -> None:
    """Clients retry what may succeed later, and are told not to retry the rest."""
    assert errors.Overloaded("Wait.", retry_after=7).headers == {"Retry-After": "7"}
    assert errors.RateLimited("Wait.", headers={"x-ratelimit-limit-requests": "3"}).headers == {
        "Retry-After": "1",
        "x-ratelimit-limit-requests": "3",
    }
    running = errors.ResponseInProgress.for_status("resp_1", "in_progress", background=True)
    assert running.headers == {"x-should-retry": "false"}
    assert "'in_progress'" in running.message
    assert errors.InsufficientQuota("Over.").headers["x-should-retry"] == "false"
    assert errors.MethodNotAllowed.for_method("PUT", ["GET", "DELETE"]).headers == {"Allow": "GET, DELETE"}


def test_instances_share_no_headers() -> None:
    errors.Conflict("One.").headers["x-extra"] = "1"
    assert errors.Conflict("Two.").headers == {"x-should-retry": "false"}


def test_ids_in_parameters_and_routes_are_named() -> None:
    assert errors.PreviousResponseNotFound.for_id("resp_x").param == "previous_response_id"
    assert errors.ModelNotFound.for_name("gpt").param == "model"
    assert "'resp_x'" in errors.NotFound.response("resp_x").message


def test_an_error_that_need_not_be_retried_has_no_retry_after() -> None:
    """It has one of the two headers."""
    assert errors.InsufficientQuota("Spent.").headers == {"x-should-retry": "false"}
    assert errors.RateLimited("Too large.", headers=errors.NO_RETRY).headers == {"x-should-retry": "false"}
    assert errors.EntryTooLarge("Too large.").headers == {"x-should-retry": "false"}

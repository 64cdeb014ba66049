"""Errors that a worker sends to a reader in another process."""

from dataclasses import dataclass

from responses_api.errors import ApiError, ServerError


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayedError:
    """An :class:`ApiError` in a form that a message can carry."""

    kind: str
    message: str
    param: str | None
    code: str | None
    headers: dict[str, str]

    @classmethod
    def of(cls, error: ApiError) -> "RelayedError":
        """The value of an error."""
        return cls(
            kind=type(error).__name__,
            message=error.message,
            param=error.param,
            code=error.code,
            headers=dict(error.headers),
        )

    def as_error(self) -> ApiError:
        """The error again, with its status and headers; a :class:`ServerError` when this version has no such class."""
        error_class = _classes(ApiError).get(self.kind, ServerError)
        return error_class(self.message, param=self.param, code=self.code, headers=self.headers)


def _classes(base: type[ApiError]) -> dict[str, type[ApiError]]:
    classes = {base.__name__: base}
    for child in base.__subclasses__():
        classes |= _classes(child)
    return classes

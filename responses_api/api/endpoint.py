"""The base of the API's views."""

from rest_framework.views import APIView

from responses_api.caller import Caller
from responses_api.readers.request_body import RequestBody

from .request_scope import BODY, Scope, query_pairs


class Endpoint(APIView):
    """One address. Its methods are those it defines: Django's views would add OPTIONS, in `Allow` as well."""

    http_method_names = ["get", "head", "post", "delete"]
    reads_body = True
    """Whether ``post`` reads the body."""

    @property
    def caller(self) -> Caller:
        """The authenticated caller."""
        caller = self.request.auth
        assert isinstance(caller, Caller)
        return caller

    @property
    def body(self) -> RequestBody:
        """The body, as the router has read it."""
        body: RequestBody = self._scope[BODY]
        return body

    @property
    def query(self) -> list[tuple[str, str]]:
        """The query string's arguments in order."""
        return query_pairs(self._scope)

    @property
    def _scope(self) -> Scope:
        scope: Scope = self.request._request.scope  # type: ignore[attr-defined]  # of ASGI requests
        return scope

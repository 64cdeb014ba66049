"""Views that only answer GET and HEAD."""

import functools
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from responses_api.api.exceptions import error_response
from responses_api.errors import MethodNotAllowed

METHODS = ("GET", "HEAD")
View = Callable[[HttpRequest], HttpResponse]


def read_only(view: View) -> View:
    """``view`` for GET and HEAD. Other methods get a 405, without a check of a CSRF token before it."""

    @functools.wraps(view)
    def wrapped(request: HttpRequest) -> HttpResponse:
        if request.method not in METHODS:
            return error_response(MethodNotAllowed.for_method(str(request.method), METHODS))
        return view(request)

    return csrf_exempt(wrapped)

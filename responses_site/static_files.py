"""Static files under ASGI."""

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]  # whitenoise has no types
    """WhiteNoise that answers with whole files: Django can't stream its file objects under ASGI, and warns."""

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        response = static_file.get_response(request.method, request.META)
        content = b""
        if response.file is not None:
            with response.file:
                content = response.file.read()
        return HttpResponse(content, status=int(response.status), headers=dict(response.headers))

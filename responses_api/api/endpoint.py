"""The base of the API's views."""

from rest_framework.views import APIView


class Endpoint(APIView):
    """One address. Its methods are those it defines: Django's views would also claim OPTIONS, in `Allow` too."""

    http_method_names = ["get", "head", "post", "delete"]
    reads_body = True
    """Whether ``post`` looks at the body."""

"""The origin of a request, by its headers: a proxy, or a page of another site."""

from collections.abc import Iterable

from django.conf import settings

from .request_scope import Scope, header

FORWARDING_NAMES = frozenset(
    {
        "client-ip",
        "fastly-client-ip",
        "fly-client-ip",
        "forwarded",
        "true-client-ip",
        "via",
        "x-client-ip",
        "x-cluster-client-ip",
        "x-real-ip",
    }
)
FORWARDING_PREFIXES = ("cf-", "tailscale-", "x-envoy-", "x-forwarded", "x-original-")
OWN_SITE = frozenset({"", "none", "same-origin"})


def names_a_proxy(names: Iterable[str]) -> bool:
    """Whether a request with headers of these names came through a proxy or a tunnel."""
    return any(name in FORWARDING_NAMES or name.startswith(FORWARDING_PREFIXES) for name in map(str.lower, names))


def is_forwarded(scope: Scope) -> bool:
    """Whether the request was forwarded, so that its sender may be on any machine."""
    return names_a_proxy(name.decode("latin-1") for name, _ in scope["headers"])


def allowed_origin(scope: Scope) -> bytes:
    """The origin that a request names, if `RESPONSES_CORS_ORIGINS` lets its pages read the answer; else empty."""
    origin = header(scope, b"origin")
    allowed = settings.RESPONSES_CORS_ORIGINS
    return origin.encode("latin-1") if origin and ("*" in allowed or origin in allowed) else b""


def is_foreign_page(scope: Scope) -> bool:
    """Whether a browser sends the request for a page that is neither ours nor of an allowed origin.

    Browsers name the page's origin with everything that may change something, and how near the page's site is.
    """
    if allowed_origin(scope):
        return False
    origin = header(scope, b"origin").lower()
    if origin and origin != f"{scope['scheme']}://{header(scope, b'host').lower()}":
        return True
    return header(scope, b"sec-fetch-site").lower() not in OWN_SITE

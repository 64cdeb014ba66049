"""Checks of access and secrets before a server starts."""

import ipaddress

from django.conf import settings
from django.core.management.base import CommandError

from responses_api.models import ApiKey
from responses_api.services.accounts.authenticate import is_open
from responses_api.services.processes.check_secret import WrongSecret, check_secret


def refuse_without_key() -> None:
    """Refuse to bind beyond loopback while no key exists, since requests from the network need one."""
    if not settings.RESPONSES_BOUND_TO_LOOPBACK and not ApiKey.objects.exists():
        raise CommandError(
            f"HOST={settings.RESPONSES_HOST} can be reached from the network, so every request needs an API key, and "
            "none exists. Make one first: make key NAME=first PROJECT=default"
        )


def key_notice() -> str:
    """A line for a server that can't be used yet, because it needs a key and none exists; otherwise empty."""
    if is_open() or ApiKey.objects.exists():
        return ""
    return "Every request needs an API key, and none exists. Make one: make key NAME=first PROJECT=default"


def refuse_wrong_secret() -> None:
    """Refuse to start with another secret than that of the database's other processes."""
    try:
        check_secret()
    except WrongSecret as error:
        raise CommandError(str(error)) from None


def base_url(port: int) -> str:
    """The server's URL for clients on this machine."""
    host = settings.RESPONSES_HOST
    try:
        address = ipaddress.ip_address(host)
        if address.is_unspecified:
            host = "127.0.0.1" if address.version == 4 else "::1"
            address = ipaddress.ip_address(host)
        if address.version == 6:
            host = f"[{host}]"
    except ValueError:
        pass
    return f"http://{host}:{port}"

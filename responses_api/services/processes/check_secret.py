"""Checks that all processes of a database use the same secret: blobs sealed with another one can't be opened."""

from django.conf import settings

from responses_api.models import SealingSecret
from responses_api.sealing import fingerprint


class WrongSecret(Exception):
    """This process has another secret than those that used the database before. The message is for administrators."""


def check_secret() -> None:
    """Record the secret of a new database; raise :class:`WrongSecret` if the database was used with another one.

    If that is one of this process's fallback secrets, the recorded secret is replaced by the current one.
    """
    own = fingerprint(settings.SECRET_KEY)
    known, _ = SealingSecret.objects.get_or_create(pk=1, defaults={"fingerprint": own})
    if known.fingerprint in map(fingerprint, settings.SECRET_KEY_FALLBACKS):
        accept_secret()
    elif known.fingerprint != own:
        where = "RESPONSES_SECRET_KEY" if settings.RESPONSES_TEAM else "The secret (`secret.key` in the data directory)"
        raise WrongSecret(
            f"{where} is not the one that this database was used with, so compacted histories in it could not be "
            "opened. Give every process the same secret and, if you have changed it, the one of before in "
            "RESPONSES_SECRET_KEY_FALLBACKS; or give up what was sealed with that: manage.py accept_secret"
        )


def accept_secret() -> None:
    """Record this process's secret as the database's."""
    SealingSecret.objects.update_or_create(pk=1, defaults={"fingerprint": fingerprint(settings.SECRET_KEY)})

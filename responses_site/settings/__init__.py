"""Django's settings, made from `responses_site.env`."""

from responses_site.settings.base import *  # noqa: F403

"""Django's settings, all of them from `responses_site.env`."""

from responses_site.settings.base import *  # noqa: F403

"""The server's own settings: each field of the environment under its name. Their types are in `variables.pyi`."""

from responses_site.settings.environment import env

globals().update(env.django_settings())

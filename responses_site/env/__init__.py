"""The environment: each variable is declared once, with its name, kind, default, help and shape.

The settings, the check of every value, `docs/settings.md` and the types of Django's settings are derived from that.
"""

from .declaration import Declaration, SettingError
from .environment import LOCAL_NAMES, Environment, declarations, django_setting_types, unknown_names

__all__ = [
    "LOCAL_NAMES",
    "Declaration",
    "Environment",
    "SettingError",
    "declarations",
    "django_setting_types",
    "unknown_names",
]

"""Reads the environment once for the settings, and exits with one line when a value is invalid."""

import os
import sys

from responses_site.data_dir import load_or_create_secret_key, make_data_dir
from responses_site.env import Environment, SettingError, unknown_names


def read_environment() -> tuple[Environment, str]:
    """The settings and the secret key; exits when a setting is invalid."""
    try:
        environment = Environment.read(os.environ)
        make_data_dir(environment.data_dir)
        secret_key = environment.secret_key or load_or_create_secret_key(environment.data_dir)
    except SettingError as error:
        sys.exit(f"error: {error}")
    for sentence in unknown_names(os.environ):
        print(f"warning: {sentence}", file=sys.stderr)
    return environment, secret_key


env, secret_key = read_environment()

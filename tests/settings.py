"""Settings of the tests: a temporary data directory, the scripted engine, nothing from the shell's environment."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from responses_site.env import declarations

_data_dir = tempfile.mkdtemp(prefix="responses-test-")
atexit.register(shutil.rmtree, _data_dir, ignore_errors=True)
for _declaration in declarations():
    os.environ.pop(_declaration.name, None)
os.environ.update(RESPONSES_DATA_DIR=_data_dir, RESPONSES_ENGINE="scripted", RESPONSES_LOG_LEVEL="warning")

from responses_site.settings import *  # noqa: E402, F403
from responses_site.settings import DATABASES  # noqa: E402

# In a file, as it is served: Django's in-memory test database shares its cache between threads, and locks otherwise.
DATABASES["default"]["TEST"] = {"NAME": Path(_data_dir) / "test.sqlite3"}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

"""Long runs against live servers. `make soak` runs each for SOAK_SECONDS=600, `make test` for a few seconds."""

import os

LONG = "SOAK_SECONDS" in os.environ
SECONDS = float(os.environ.get("SOAK_SECONDS", "3"))
TIMEOUT = 3 * SECONDS + 180
"""Seconds after which a test of this package is stopped."""
MODEL = "smollm2-135m"

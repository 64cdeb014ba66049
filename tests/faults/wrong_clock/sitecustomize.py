"""Loaded by a Python that runs with libfaketime: replaces `time.sleep`, which version 0.9.10 breaks.

https://github.com/wolfcw/libfaketime: `clock_nanosleep` with an absolute time, when the monotonic clock is not faked.
"""

import select
import time
from typing import SupportsIndex


def sleep(seconds: float | SupportsIndex, /) -> None:
    """Wait with another system call."""
    select.select([], [], [], float(seconds))


time.sleep = sleep

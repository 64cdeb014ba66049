"""Read at the start of a Python that libfaketime lies to: its version 0.9.10 breaks what `time.sleep` calls.

https://github.com/wolfcw/libfaketime, `clock_nanosleep` with an absolute time while the monotonic clock is left alone.
"""

import select
import time
from typing import SupportsIndex


def sleep(seconds: float | SupportsIndex, /) -> None:
    """Wait by another call of the system's."""
    select.select([], [], [], float(seconds))


time.sleep = sleep

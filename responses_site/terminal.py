"""Ctrl-C under `make serve` ends the server only, so that make sees its status 0 and has nothing to complain of."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def own_terminal() -> Iterator[None]:
    """While it lasts, keys such as Ctrl-C reach this process and not the `make` that started it.

    The process becomes a foreground group of its own, and gives the terminal back at the end. It does nothing unless
    make is the parent and the terminal is ours to take.
    """
    parent_group = os.getpgrp()
    if "MAKELEVEL" not in os.environ or not _in_foreground(parent_group) or parent_group == os.getpid():
        yield
        return
    # Taking the terminal from the background would stop us (SIGTTOU); being stopped would leave nobody at it (SIGTSTP).
    previous = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGTTOU, signal.SIGTSTP)}
    os.setpgid(0, 0)
    os.tcsetpgrp(sys.stdin.fileno(), os.getpid())
    try:
        yield
    finally:
        with suppress(OSError):
            os.tcsetpgrp(sys.stdin.fileno(), parent_group)
            os.setpgid(0, parent_group)
        for number, handler in previous.items():
            signal.signal(number, handler)


def _in_foreground(group: int) -> bool:
    try:
        return os.isatty(sys.stdin.fileno()) and os.tcgetpgrp(sys.stdin.fileno()) == group
    except (OSError, ValueError, AttributeError):  # no terminal, or no stdin at all
        return False

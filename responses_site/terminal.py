"""Ctrl-C under `make serve` ends the server only, so that make sees its status 0 and prints no error."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def own_terminal() -> Iterator[None]:
    """Within the block, Ctrl-C reaches this process and not the `make` that started it.

    The process becomes its own foreground process group, and returns the terminal at the end. Without make as the
    parent, or without the terminal in its foreground, nothing changes.
    """
    parent_group = os.getpgrp()
    if "MAKELEVEL" not in os.environ or not _in_foreground(parent_group) or parent_group == os.getpid():
        yield
        return
    # Taking the terminal in the background would stop the process (SIGTTOU). Ctrl-Z (SIGTSTP) would stop it without
    # make in the foreground to return to.
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

"""Ctrl-C under make."""

import os
import pty
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from responses_site.setting_kinds import BASE_DIR

PROGRAM = """
import signal, threading
from responses_site.terminal import own_terminal
stop = threading.Event()
signal.signal(signal.SIGINT, lambda *_: stop.set())
with own_terminal():
    print("ready", flush=True)
    while not stop.wait(0.1):
        pass
    print("ended", flush=True)
"""


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_ctrl_c_under_make_ends_with_status_0(tmp_path: Path) -> None:
    """Make itself is not interrupted, so it doesn't report an error."""
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "Makefile").write_text(f"serve:\n\t@exec {sys.executable} program.py\n")
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(BASE_DIR)}
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execvpe("make", ["make", "serve"], environment)
    shown = b""
    with suppress(OSError):  # the terminal is gone when its last process has ended
        while part := os.read(terminal, 1024):
            shown += part
            if shown.endswith(b"ready\r\n"):
                os.write(terminal, b"\x03")
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert shown.replace(b"^C", b"") == b"ready\r\nended\r\n"
    assert os.waitstatus_to_exitcode(status) == 0

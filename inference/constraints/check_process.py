"""The process that checks grammars for `checker`: reads one JSON array per line, writes one per line.

A request is `[kind, text, seconds]`, its answer `[error, CPU seconds used]`. A check that uses more than `seconds` of
CPU time ends the process by SIGPROF, wherever it is: llguidance itself can't be interrupted.
"""

import contextlib
import json
import resource
import signal
import sys
import time
from pathlib import Path

from inference.constraints.matching import constraint_error
from inference.types import Constraint

MEMORY_BYTES = 2 << 30
"""Address space; a check that needs more ends the process."""
RETIRE_BYTES = 256 << 20
"""A process that has used more memory ends after its answer: llguidance gives little of it back."""


def main() -> None:
    """Answer until standard input ends."""
    with contextlib.suppress(ValueError, OSError):  # macOS knows the limit, and refuses to set it
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the server decides
    for line in sys.stdin:
        kind, text, seconds = json.loads(line)
        began = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, seconds)
        error = constraint_error(Constraint(kind=kind, text=text))
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps([error, time.process_time() - began]), flush=True)
        if _most_memory() > RETIRE_BYTES:
            return


def _most_memory() -> int:
    """The most bytes that the process has had in memory; 0 where the system doesn't say."""
    # Not getrusage: there a process begins with what its parent had.
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    return 0


if __name__ == "__main__":
    main()

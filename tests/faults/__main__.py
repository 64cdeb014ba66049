"""python -m tests.faults [kill] [rolling] [realmodel] [outage] [cancel] [fairness] [poison]
[clocks] [messages] [frozen] [stuck] [statements] [sweep] [walk] [--jobs 200] [--seed N]"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .cancel import run_cancel
from .cases import Case
from .fairness import run_fairness
from .fencing import run_clocks, run_frozen, run_messages
from .kill import run_kill, run_rolling
from .outage import run_outage
from .poison import run_poison
from .realmodel import run_realmodel
from .statements.run import run_statements
from .stuck import run_stuck
from .sweep import run_sweep
from .walk import run_walk

SCRIPTS: dict[str, Callable[..., Iterator[Case]]] = {
    "kill": run_kill,
    "rolling": run_rolling,
    "realmodel": run_realmodel,
    "outage": run_outage,
    "cancel": run_cancel,
    "fairness": run_fairness,
    "poison": run_poison,
    "clocks": run_clocks,
    "messages": run_messages,
    "frozen": run_frozen,
    "stuck": run_stuck,
    "statements": run_statements,
    "sweep": run_sweep,
    "walk": run_walk,
}


def main() -> int:
    """Run the named scripts, all by default. Returns 1 if there were errors."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *SCRIPTS], default=[], metavar="NAME")
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="faults-"))
    print(f"seed {options.seed}, servers and their logs in {directory}", flush=True)
    succeeded = True
    for name in options.names or SCRIPTS:
        started = time.monotonic()
        try:
            for case in SCRIPTS[name](directory / name, jobs=options.jobs, seed=options.seed):
                print(case, f"({time.monotonic() - started:.0f} s)", flush=True)
                succeeded = succeeded and not case.errors
        except (AssertionError, OSError) as error:
            print(f"{name}: aborted: {error!r}", flush=True)
            succeeded = False
    return 0 if succeeded else 1


if __name__ == "__main__":
    sys.exit(main())

"""python -m tests.hostile [WORDS…] [--every] [--seconds 1800] [--shape embedded|team] [--most MB] [--seed N]

Sends hostile requests, those whose names contain one of the words, and prints the worst five by each measure. The exit
status is 1 if a rule was violated.
"""

import argparse
import contextlib
import os
import random
import sys
from pathlib import Path

from tests.services import find_postgres, fresh_database

from . import MIB
from .plans import every_kind, everything
from .report import report, write_json
from .run import make_server, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("words", nargs="*", metavar="WORDS")
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--shape", choices=("embedded", "team"), default="embedded")
    parser.add_argument("--most", type=int, default=64, metavar="MB", help="size of the largest body")
    parser.add_argument("--every", action="store_true", help="every kind once at a small size, without a time limit")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        database_url = ""
        if options.shape == "team":
            postgres = find_postgres()
            if postgres is None:
                parser.error("the team shape needs PostgreSQL: set TEST_DATABASE_URL")
            database_url = stack.enter_context(fresh_database(postgres))
        redis_url = os.environ.get("TEST_REDIS_URL", "redis://127.0.0.1:6379/15")
        server = make_server(options.shape, database_url=database_url, redis_url=redis_url)
        print(f"seed {options.seed}, the server's log in {server.log}", flush=True)
        if options.every:
            plan = every_kind(seed=options.seed, words=options.words)
        else:
            plan = everything(
                seconds=options.seconds, seed=options.seed, words=options.words, max_size=options.most * MIB
            )
        outcome = run(server, plan)
    print(report(outcome.measurements))
    print(f"{outcome.sent_kinds} of {outcome.kinds} kinds of requests were sent.", *outcome.errors, sep="\n")
    if options.json:
        write_json(outcome.measurements, options.json)
    return 1 if outcome.errors or outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main())

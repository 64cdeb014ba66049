"""What servers are made to suffer: processes that die, services that are away, cancellations at every moment.

`make faults` runs all scripts, `python -m tests.faults NAME...` some of them. Each prints a line a case, with what it
did and saw, and below it what was wrong; the status is 1 when anything was. `tests/live/lifecycle/test_faults.py` has
short ones.
"""

"""Fault injection: processes die, services are unavailable, and jobs are cancelled at any time.

`make faults` runs all scripts, `python -m tests.faults NAME...` some of them. Each prints one line per case with what
was done and measured, followed by the errors; the exit status is 1 if there were any.
`tests/live/lifecycle/test_faults.py` has short versions.
"""

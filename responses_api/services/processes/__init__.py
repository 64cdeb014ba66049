"""Housekeeping of every process: it announces itself, publishes its counts, and sweeps when it is its turn."""

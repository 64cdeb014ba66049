"""Tests. `make test` runs them all; `tests/conftest.py` finds the services that they need."""

"""Constrained decoding: grammars compiled for a vocabulary, and the masks of tokens that may come next."""

from inference.constraints.checker import Checked, CheckInterrupted, check_within_budget
from inference.constraints.matching import constraint_error

__all__ = ["CheckInterrupted", "Checked", "check_within_budget", "constraint_error"]

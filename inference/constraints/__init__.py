"""Constrained decoding: grammars compiled for a vocabulary, and the masks of tokens that may come next."""

from inference.constraints.checker import Checked, check_within_budget
from inference.constraints.matching import constraint_error

__all__ = ["Checked", "check_within_budget", "constraint_error"]

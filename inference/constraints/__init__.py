"""Constrained decoding: grammars compiled for a vocabulary, and the masks of tokens that may come next."""

from inference.constraints.matching import constraint_error

__all__ = ["constraint_error"]

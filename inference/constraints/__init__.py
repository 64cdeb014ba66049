"""Constrained decoding: grammars compiled for a vocabulary, and the masks of tokens that may come next."""

"""Turns stored and sent items into the tokens of a prompt, within limits."""

"""Speculation by prompt lookup: guesses the next tokens from what a sequence has repeated, and verifies them at once.

It changes the speed of a generation and nothing else (decision 22).
"""

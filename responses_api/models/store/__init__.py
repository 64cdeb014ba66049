"""Responses, conversations, and what they are made of."""

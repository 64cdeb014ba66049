"""Responses and conversations, their turns and items."""

"""Pages for responses, items and usage."""

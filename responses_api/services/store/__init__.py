"""The store: turns, items, responses and conversations, their limits, and their removal."""

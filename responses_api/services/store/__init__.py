"""What is stored: turns, items, responses and conversations, their limits, and their removal."""

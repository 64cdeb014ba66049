"""Decodes sequences on MLX: reads their prompts, and chooses one token of each per step (decision 25)."""

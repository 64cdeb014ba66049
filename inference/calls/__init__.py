"""Reading calls out of a model's text as it comes: what the parsers of all dialects share. Standard library only."""

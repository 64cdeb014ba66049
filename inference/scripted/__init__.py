"""An engine and a tokenizer without a model, for tests and for trying things out. Standard library only."""

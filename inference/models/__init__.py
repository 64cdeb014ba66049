"""Models on disk: their installation, the facts in their files, and their tokenizers."""

"""Models on disk: how they get there, what their files say, and their tokenizers."""

"""The prefix cache: attention state of earlier sequences, kept for those that begin with the same tokens."""

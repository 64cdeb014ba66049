"""The tools that a request declares, and which of them may be called."""

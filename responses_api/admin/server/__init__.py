"""Pages for the server's processes and their models."""

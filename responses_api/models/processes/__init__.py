"""The server's processes, and what they share."""

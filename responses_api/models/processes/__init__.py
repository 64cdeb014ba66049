"""The server's processes, and the data that they share."""

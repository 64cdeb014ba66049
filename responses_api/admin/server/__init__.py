"""What the server's processes do."""

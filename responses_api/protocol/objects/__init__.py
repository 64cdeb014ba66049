"""What the server answers with."""

"""What requests may say: bodies and query strings."""

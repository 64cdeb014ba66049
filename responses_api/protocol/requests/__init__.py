"""Bodies and query strings of requests."""

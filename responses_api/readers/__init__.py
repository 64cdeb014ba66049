"""Web processes that wait for a response and pass on its events."""

"""Readers: web processes wait for a response and pass its events to the client."""

"""Kills a process at every statement that it sends to the database."""

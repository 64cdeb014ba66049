"""Threads, locks and the log file of the database connection."""

"""Admits requests: checks them and writes their rows."""

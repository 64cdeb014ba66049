"""Callers' JSON Schemas: checked, and prepared for the decoder that enforces them."""

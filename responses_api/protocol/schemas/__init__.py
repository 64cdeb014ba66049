"""JSON Schemas of callers: checked, and made ready for the decoder that enforces them."""

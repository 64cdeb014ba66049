"""JSON text and values: read, written and checked, whatever they mean."""

"""JSON text and values: reading, writing and checking, without regard to what they mean."""

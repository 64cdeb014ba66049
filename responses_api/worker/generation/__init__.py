"""One generation, from the claimed row to the finished response."""

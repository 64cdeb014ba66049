"""Projects, keys and administrators, and who a caller is."""

"""Projects, keys and administrators, and the authentication of callers."""

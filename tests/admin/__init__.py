"""The admin, through Django's test client and a real browser."""

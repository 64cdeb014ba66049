"""The web server: Daphne, with limits."""

"""The web server: Daphne, with bounds."""

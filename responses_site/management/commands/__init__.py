"""`manage.py` commands that concern the settings."""

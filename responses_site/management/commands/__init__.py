"""`manage.py` commands that run servers, migrate, and generate documents."""

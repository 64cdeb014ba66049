"""People who sign in: administrators now, project members with the dashboard."""

from django.contrib.auth.models import AbstractUser


class User(AbstractUser):
    """A person. Our own class from the first migration on, since Django cannot swap it later."""

"""What the templates of the admin need beside Django's own."""

"""Elements that several pages of the admin share."""

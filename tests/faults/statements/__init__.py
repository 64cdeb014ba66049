"""A process that is killed at every statement of its database, and the case made of that."""

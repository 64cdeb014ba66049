"""Pages for users, projects, keys and failed sign-ins."""

"""Users, projects and API keys."""

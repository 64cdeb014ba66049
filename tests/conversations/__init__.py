"""The Conversations API without a server."""

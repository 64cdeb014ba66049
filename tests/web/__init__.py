"""The pages that need no key."""

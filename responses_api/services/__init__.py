"""The application's operations, one write path per module, in packages by concern that import one way."""

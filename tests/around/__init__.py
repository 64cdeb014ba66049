"""What surrounds the API: CORS, status, metrics."""

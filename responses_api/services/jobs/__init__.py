"""Responses that are being generated: queued, leased, logged, cancelled, recovered, finished."""

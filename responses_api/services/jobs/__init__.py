"""The life of a response that is being generated: queued, leased, logged, cancelled, recovered, finished."""

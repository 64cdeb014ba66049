"""The open output item of a stream: each kind is a class of the same shape."""

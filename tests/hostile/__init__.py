"""Hostile requests: every field of every route long, deep, wide or repeated.

`requests` builds them: `locations` takes the fields from the served OpenAPI document, `shapes`, `schema_shapes` and
`repeated` what is inserted there, and `corpus` combines both. `measure` sends a request and measures its effects, also
those on other clients (`watch`). `make hostile` runs all of it, `make test` the worst requests at small sizes.
"""

MODEL = "smollm2-135m"
KIB, MIB = 1 << 10, 1 << 20

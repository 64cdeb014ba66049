"""Requests that are made to hurt others: every field of every route long, deep, wide or repeated.

The places come from the served OpenAPI document (`places`), what is put there from `shapes`, `schema_shapes` and
`repeated`; `corpus` puts them together. `measure` sends one and says what it did to the server, `watch` is what
others see meanwhile. `make hostile` runs all of it, `make test` the worst at small sizes.
"""

MODEL = "smollm2-135m"
KIB, MIB = 1 << 10, 1 << 20

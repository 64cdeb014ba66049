"""The API as an OpenAPI 3.1 document, made from the types of the protocol."""

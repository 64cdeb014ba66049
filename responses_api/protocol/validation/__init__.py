"""How requests are validated: the base of their models, and the error that the client gets."""

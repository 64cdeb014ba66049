"""How requests are validated: the base of their models, and the one error that the client gets."""

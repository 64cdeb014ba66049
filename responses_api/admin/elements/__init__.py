"""Parts that several pages of the admin are made of."""

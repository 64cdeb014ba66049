"""From stored and sent items to the tokens that a model reads, within bounds."""

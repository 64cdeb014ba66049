"""Items: what a turn is made of, as clients send them and as histories hold them."""

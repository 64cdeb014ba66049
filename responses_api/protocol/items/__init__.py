"""Items of a turn, as clients send them and as histories contain them."""

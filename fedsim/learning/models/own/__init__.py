"""Models of the user's own: modules of torch, and what gives them."""

"""How long work takes, and who is there to do it."""

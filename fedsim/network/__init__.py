"""How long bits take."""

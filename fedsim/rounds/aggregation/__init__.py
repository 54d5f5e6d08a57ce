"""How the updates that have arrived become the next model."""

"""What changes how participations go, beside radio and work: one effect a file."""

"""Data sets, and their division among clients."""

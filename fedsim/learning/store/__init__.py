"""Results under digests: in memory, or on disk for all runs of a user."""

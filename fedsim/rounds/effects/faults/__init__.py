"""Faults of a run: crashes of clients, outages of their links, restarts of the server."""

"""Uniform sampling of data in place of clients, and the question for sizes that it needs."""

"""Handles, the order in which they get their numbers, and the store of results."""

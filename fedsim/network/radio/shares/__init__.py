"""Shares of a band: the power in them, their fading, and what a scheduler gains by choosing blocks."""

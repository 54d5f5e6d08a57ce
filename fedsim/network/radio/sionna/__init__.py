"""Fading and link abstraction of Sionna, an optional library, behind the contracts of a cell."""

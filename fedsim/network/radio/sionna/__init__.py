"""Fading and link abstraction of Sionna (https://nvlabs.github.io/sionna), an optional library, behind the cell's contracts."""

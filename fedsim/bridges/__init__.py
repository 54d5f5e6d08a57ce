"""Bridges: fedsim's clock in other people's federations, and its transfers in other simulators."""

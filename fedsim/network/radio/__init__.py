"""fedsim.network.radio."""

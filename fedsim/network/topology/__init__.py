"""fedsim.network.topology."""

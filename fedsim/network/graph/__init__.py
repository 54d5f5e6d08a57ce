"""fedsim.network.graph."""

"""fedsim.network.medium."""

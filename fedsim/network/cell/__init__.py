"""fedsim.network.cell."""

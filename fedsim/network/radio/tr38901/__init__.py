"""fedsim.network.radio.tr38901."""

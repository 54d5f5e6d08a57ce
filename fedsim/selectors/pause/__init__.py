"""fedsim.selectors.pause."""

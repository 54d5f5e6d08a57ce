"""fedsim.selectors.clustered."""

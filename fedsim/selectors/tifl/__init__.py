"""fedsim.selectors.tifl."""

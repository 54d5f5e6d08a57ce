"""fedsim.selectors.fedsuv."""

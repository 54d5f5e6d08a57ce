"""fedsim.selectors.refl."""

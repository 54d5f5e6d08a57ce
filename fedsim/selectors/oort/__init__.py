"""fedsim.selectors.oort."""

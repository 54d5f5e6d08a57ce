"""fedsim.learning.data."""

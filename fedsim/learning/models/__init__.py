"""fedsim.learning.models."""

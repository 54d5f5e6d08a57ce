"""fedsim.learning.executors."""

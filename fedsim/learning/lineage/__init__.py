"""fedsim.learning.lineage."""

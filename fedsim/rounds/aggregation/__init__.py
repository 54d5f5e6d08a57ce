"""fedsim.rounds.aggregation."""

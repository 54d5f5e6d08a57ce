"""fedsim.rounds.hierarchy."""

"""fedsim.rounds.policies."""

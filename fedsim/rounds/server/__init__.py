"""fedsim.rounds.server."""

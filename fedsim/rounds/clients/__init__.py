"""fedsim.rounds.clients."""

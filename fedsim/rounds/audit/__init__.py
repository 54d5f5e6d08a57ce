"""fedsim.rounds.audit."""

"""One client in one round: an assignment, the phases of its participation, what ends it early, and its record."""

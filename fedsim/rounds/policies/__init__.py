"""When a round is over, and what becomes of late clients."""

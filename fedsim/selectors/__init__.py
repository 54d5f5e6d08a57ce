"""Who takes part: one file per published method."""

"""Selection whose probabilities or questions follow what training shows: losses, norms and staleness."""

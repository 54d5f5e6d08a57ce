"""FedSUV: selection by bandits of validity and utility."""

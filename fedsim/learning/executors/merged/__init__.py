"""Clients of one plain step each as one batch: the gradient of a weighted sum of their losses."""

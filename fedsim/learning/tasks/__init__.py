"""Tasks: what is learned about a sample, by which loss, and by which metrics a model is judged."""

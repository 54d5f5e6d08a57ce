"""fedsim: a discrete-event network simulator for federated learning."""

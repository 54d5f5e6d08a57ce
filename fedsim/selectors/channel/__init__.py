"""Selection by the channels of the clients' uplinks."""

"""Edge servers below a cloud: groupings of clients, rules of the cloud, backhauls."""

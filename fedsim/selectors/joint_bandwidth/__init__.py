"""Selection of clients together with the division of the uplink's band among them."""

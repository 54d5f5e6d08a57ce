"""Laws of availability: the clients that a server can reach, when and for how long."""

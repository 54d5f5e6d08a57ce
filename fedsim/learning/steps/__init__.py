"""What an update passes on its way from a client's training to the server's sum."""

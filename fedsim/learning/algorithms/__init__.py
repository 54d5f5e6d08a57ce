"""What a client does in its local training beside plain steps."""

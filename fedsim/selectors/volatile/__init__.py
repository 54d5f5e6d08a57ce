"""Selection of clients that often fail to deliver."""

"""The cost of secure aggregation: its messages on the clock, and the clients that are lost between them."""

"""Transport over a wide-area path: round trips, slow start, losses, overhead, and the server's own link."""

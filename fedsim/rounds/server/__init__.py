"""The server process: rounds, selection, clients in flight, the buffer of updates and the records."""

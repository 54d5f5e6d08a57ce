"""Worker processes: their start, their messages, and the memory that they share."""

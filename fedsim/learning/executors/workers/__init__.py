"""Worker processes: who starts them, what they are told, and what they share."""

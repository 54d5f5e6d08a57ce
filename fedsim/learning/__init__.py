"""What is learned: the only room with torch in it."""

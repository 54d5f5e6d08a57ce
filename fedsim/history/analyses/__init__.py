"""What is read from the tables of a run: targets, means over time, who was lost, and why a run is fast or slow."""

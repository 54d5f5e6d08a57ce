"""What comes from outside, and what of it is let in: numbers, paths and files, archives, classes by name."""

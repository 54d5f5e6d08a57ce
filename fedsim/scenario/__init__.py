"""The frozen description of one experiment."""

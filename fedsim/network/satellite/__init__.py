"""Satellites: transfers within windows of contact, over a distance that changes during a pass."""

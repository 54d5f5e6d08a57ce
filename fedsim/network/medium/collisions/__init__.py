"""Collisions of packets and frames of stations that send whenever they may."""

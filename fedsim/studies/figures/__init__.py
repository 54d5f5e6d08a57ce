"""Figures of studies; matplotlib is loaded when one is drawn."""

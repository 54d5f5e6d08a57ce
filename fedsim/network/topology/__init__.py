"""Graphs and places: routes, attachment, coverage, mobility, handover and max-min fair rates, without a clock."""

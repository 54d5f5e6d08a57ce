"""Paired differences between the variants of a study: statistics, sentences, tables, figures, and why."""

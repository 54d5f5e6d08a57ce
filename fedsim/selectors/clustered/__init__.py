"""Clustered sampling: one client from each of m distributions (Fraboni et al., ICML 2021)."""

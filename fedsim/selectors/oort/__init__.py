"""Oort (Lai et al., OSDI 2021), by its paper and as in FedScale's code."""

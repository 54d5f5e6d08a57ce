"""Networks whose rates are measured: capacities over time from files, repeated."""

"""Which executor is the fastest: measured once a machine."""

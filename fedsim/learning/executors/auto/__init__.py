"""Which executor is the fastest: measured once, kept with the machine."""

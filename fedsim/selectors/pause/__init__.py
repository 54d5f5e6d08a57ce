"""PAUSE, its searches, its Genie, and BSFL, on which it is based."""

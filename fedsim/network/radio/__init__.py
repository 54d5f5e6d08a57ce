"""The physics of radio links: path loss, shadowing, fading, interference and rates. NumPy only, without a clock."""

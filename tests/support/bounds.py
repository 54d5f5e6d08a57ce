"""How far samples lie from their laws."""

import math


def dkw(number, level=1e-6):
    """Return the Dvoretzky-Kiefer-Wolfowitz bound: a sample is farther from its law with probability ``level``."""
    return math.sqrt(math.log(2 / level) / (2 * number))

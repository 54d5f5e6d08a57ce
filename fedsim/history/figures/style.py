"""How figures of several runs look."""

from typing import Final

SIZE_INCHES: Final = (6.4, 4.0)
DOTS_PER_INCH: Final = 150
# Okabe and Ito's palette: colour-blind readers can tell the curves apart, also in grey.
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES: Final = ("-", "--", "-.", ":")

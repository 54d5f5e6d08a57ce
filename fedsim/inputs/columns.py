"""Columns of files, within the bounds of numbers in a scenario."""

import numpy as np
from numpy.typing import NDArray

from fedsim.errors import FedsimError
from fedsim.inputs.bounds import NUMBER, unit_bound


def check_column(values: NDArray[np.float64], name: str, where: str, error: type[FedsimError]) -> None:
    """Refuse a column of a file with a number out of the bounds of its name."""
    bound = unit_bound(name) or NUMBER
    size = np.abs(values)
    wrong = values[(values != 0) & ((size < bound.least) | (size > bound.greatest))]
    if wrong.size:
        raise error(f"{where}: {name}: {float(wrong[0])!r} is not allowed; allowed: {bound.words()}")

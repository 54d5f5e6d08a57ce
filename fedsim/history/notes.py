"""What a user should know of a run, read from its tables."""

import numpy as np

from fedsim.history.tables import Tables


def notes_of(tables: Tables) -> list[str]:
    """Return sentences on what went wrong without ending the run; none if nothing did.

    Parameters
    ----------
    tables : of the run
    """
    loss = tables.column("evaluations", "loss").astype(np.float64)
    wrong = np.flatnonzero(~np.isfinite(loss))
    if not wrong.size:
        return []
    first = int(wrong[0])
    number, time_s = (tables.column("evaluations", name)[first] for name in ("round", "time_s"))
    again = "" if wrong.size == loss.size - first else "; later ones are finite again"
    return [
        f"the model is no number any more: its loss is {loss[first]} after round {number}, at {time_s:.6g} s, and "
        f"{wrong.size} of {loss.size} evaluations are not finite{again}"
    ]

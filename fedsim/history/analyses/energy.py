"""The joules of a run: to a target, and of each client."""

import numpy as np
import pyarrow as pa

from fedsim.history.analyses.targets import reached
from fedsim.history.outcomes import Fate
from fedsim.history.tables import Tables


def energy(tables: Tables) -> pa.Table:
    """Return what each client's battery has paid, the one that paid most first.

    Columns: ``client``; ``energy_j``, all joules that it has spent; ``used_j``, those of participations whose updates
    were used; ``share`` of the joules of all clients.

    Parameters
    ----------
    tables : of the run

    Raises
    ------
    RunError
        If the run has no batteries.
    """
    client, _, joules = tables.spending()
    fate = tables.column("participations", "fate")
    used = np.isin(fate, [Fate.USED.label, Fate.STALE_USED.label])
    size = int(client.max(initial=-1)) + 1
    in_all = np.bincount(client, joules, minlength=size)
    of_used = np.bincount(client[: fate.size][used], joules[: fate.size][used], minlength=size)
    ids = np.unique(client)
    ids = ids[np.argsort(-in_all[ids], kind="stable")]
    columns = {"client": ids, "energy_j": in_all[ids], "used_j": of_used[ids], "share": in_all[ids] / in_all.sum()}
    return pa.table({name: pa.array(column) for name, column in columns.items()})


def energy_to(
    tables: Tables, metric: str = "accuracy", *, above: float | str | None = None, below: float | None = None
) -> float | None:
    """Return the joules of all clients up to the first evaluation that reaches a value, None if none does.

    Parameters
    ----------
    tables : of the run
    metric, above, below : as of `time_to`

    Raises
    ------
    RunError
        If the run has no batteries or no such metric, or the value is none of it.
    """
    first_s = reached(tables, metric, above=above, below=below).first_s
    return None if first_s is None else float(tables.spent_j(np.array(first_s)))

"""The contract check of path losses."""

from typing import Final

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.network import PATH_LOSSES, PathLoss
from fedsim.network.radio.contracts import PATH_LOSS, LargeScale, RandomPathLoss
from fedsim.streams import Streams
from fedsim.testing.examination import Examination, at_least_two

_FAR: Final = 1000.0
"""Times the nearest distance is the farthest one; the loss has to be larger there."""


def check_path_loss(path_loss: PathLoss, *, nearest_m: float = 20.0, distances: int = 60, seed: int = 0) -> None:
    """Check that a path loss keeps the contract of `fedsim.network.PathLoss`; return None if it does.

    The law is asked for losses at many distances, from one to a thousand times as far. It must

    * return with ``loss_db`` finite losses of at least 0 dB as a float64 array of the shape of the distances, for a
      table, for one number, for none, and at the site itself (0 m),
    * lose more at the farthest distance than at the nearest; between them a law may rise and fall,
    * answer each distance for itself: the same again, alone and among others,
    * leave the distances alone (they are read-only), and draw no random number of its own,
    * if it has ``draw``, return a `LargeScale` with arrays of the shape of the distances and a ``sigma_db`` of at least
      0, and the same from the same seed.

    Parameters
    ----------
    path_loss : a law, as it stands in ``network.path_loss``
    nearest_m : smallest distance but 0, in metres
    distances : how many, at least 2
    seed : of the random streams, >= 0

    Raises
    ------
    ContractError
        Naming the law, the member and the fault.
    ValueError
        If ``distances`` is too small to check anything.

    Examples
    --------
    >>> from fedsim.network import FreeSpace
    >>> check_path_loss(FreeSpace(carrier_hz=2e9))
    """
    at_least_two(distances=distances)
    _Law(path_loss).check(np.geomspace(nearest_m, _FAR * nearest_m, distances), seed)


class _Law(Examination):
    def __init__(self, path_loss: PathLoss) -> None:
        super().__init__(path_loss)
        self.law(not PATH_LOSSES.missing_methods(path_loss), "loss_db: there is no such method")
        self._law = PATH_LOSS.checked(path_loss)

    def check(self, distance_m: FloatArray, seed: int) -> None:
        loss_db = self._loss_db(distance_m)
        more = loss_db[-1] > loss_db[0]
        fault = f"loss_db is {loss_db[-1]:.6g} dB at {distance_m[-1]:g} m and {loss_db[0]:.6g} dB at"
        self.law(more, f"{fault} {distance_m[0]:g} m; it must be larger far away")
        some = self._loss_db(distance_m[::-3])
        self.same(some, loss_db[::-3], "loss_db: the answer for some distances is not that for all")
        table = self._loss_db(np.resize(distance_m, (2, 1, distance_m.size)))
        self.same(table[1, 0], loss_db, "loss_db: the answer in a table is another one")
        for few in (np.array(distance_m[0]), distance_m[:0], np.zeros(1)):
            self._loss_db(few)
        if isinstance(self._law, RandomPathLoss):
            self._check_draws(self._law, distance_m, seed)

    def _check_draws(self, law: RandomPathLoss, distance_m: FloatArray, seed: int) -> None:
        first, again = (self._drawn(law, distance_m, 0, seed) for _ in range(2))
        for column in ("loss_db", "sigma_db", "los"):
            fault = f"draw: {column} differs when it is drawn again from the same seed"
            self.same(getattr(again, column), getattr(first, column), fault)

    def _drawn(self, law: RandomPathLoss, distance_m: FloatArray, site: int | IntArray, seed: int) -> LargeScale:
        drawn = self.ask("draw", lambda: law.draw(distance_m, site, Streams(seed)))
        for column, dtype in (("loss_db", np.float64), ("sigma_db", np.float64), ("los", np.bool_)):
            least = -np.inf if column == "loss_db" else 0.0
            self.array(f"draw: {column}", getattr(drawn, column), distance_m.shape, dtype, least=least)
        return drawn

    def _loss_db(self, distance_m: FloatArray) -> FloatArray:
        answer = self.ask("loss_db", self._law.loss_db, distance_m)
        # NumPy turns arrays without axes into numbers.
        if not distance_m.ndim and isinstance(answer, np.float64):
            answer = np.asarray(answer)
        return self.array("loss_db", answer, distance_m.shape)

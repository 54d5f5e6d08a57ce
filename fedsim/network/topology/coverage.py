"""fedsim.network.topology.coverage."""

from typing import Protocol

from fedsim.arrays import BoolArray, FloatArray, IntArray


class View(Protocol):
    """What the b stations of one run offer clients at n places: a function of clients and places alone.

    Attributes
    ----------
    signal_db : how strong each station is, on any scale in dB, shape (n, b)
    """

    @property
    def signal_db(self) -> FloatArray:
        """How strong each station is."""
        ...

    def in_reach(self) -> BoolArray:
        """Return whether a client that has lost its station can change to each of them, shape (n, b)."""
        ...

    def rates_bps(self, station: IntArray) -> FloatArray:
        """Return what the down- and the uplink to one station for each place carry, shape (n, 2)."""
        ...


class Coverage(Protocol):
    """The stations of one run.

    Attributes
    ----------
    step_m : how far a client walks before its rates are looked up anew; `inf` where they depend on no place
    """

    @property
    def step_m(self) -> float:
        """How far a client walks at the same rates."""
        ...

    def view(self, client: IntArray, places_m: FloatArray) -> View:
        """Return what clients (ids, shape (n,)) have at places of shape (n, 2)."""
        ...

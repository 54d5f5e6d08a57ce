"""FedRolex: the window of trained channels rolls on with every round."""

from fedsim.learning.algorithms.widths import SubModels


class FedRolex(SubModels):
    """Sub-models by a rolling window (Alam et al., "FedRolex", NeurIPS 2022, section 3.2, equation 3 and Algorithm 1).

    In round j the window of a layer of n channels begins at channel ``j mod n`` and goes on from the first one after
    the last, so that in n rounds all channels are trained alike. j is the version of the server's model. Averaging is
    that of `HeteroFL`: each parameter over the clients that hold it. With width 1 it is plain training.

    Examples
    --------
    >>> [FedRolex().shift(version) for version in range(3)]  # HeteroFL's windows begin at channel 0 always
    [0, 1, 2]
    """

    def shift(self, version: int) -> int:
        return version

"""A selector's answer: the clients of a round, and what the method prescribes for them."""

from dataclasses import dataclass

import numpy as np

from fedsim.arrays import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """Resources that a method gives to the clients of a cohort; arrays of shape (m,), None for no change."""

    bandwidth_hz: FloatArray | None = None
    transmit_power_dbm: FloatArray | None = None
    cpu_frequency: FloatArray | None = None

    def part(self, kept: IntArray) -> "Allocation":
        return Allocation(**{name: None if value is None else value[kept] for name, value in vars(self).items()})


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Samples that each client of a cohort draws among its own, on which alone it works."""

    probability: float
    divisor: float | None = None
    bits: float = 0.0
    has_model: bool = False


@dataclass(frozen=True)
class Cohort:
    """The clients of a round, with what a method prescribes for them; arrays have shape (m,).

    Attributes
    ----------
    client : distinct ids among the candidates
    draws : number of times that each client was drawn, for draws with replacement; 1 each if None
    weights : aggregation weight of each client; by samples (FedAvg) if None. Of a mean they sum to 1
    work : share of the local work that each client does, in (0, 100]; all of it if None. Above 1 the client does that
        many times the local work of the scenario: its epochs go on. Seconds, energy and the training have that share,
        rounded up to whole steps up to 1, and down above; the update is as large as always
    allocation : radio and computing resources of each client; those of the scenario if None
    trained : whether all clients of the cohort have done their work for an answer of this round (`Answers.update_norm`)
        They send the update that they have: a message without bits asks for it, and they do no work.
    sampling : samples that each client draws for this participation; None for all of its own. A client that draws
        none sends a message without bits, or noise or a mask alone where updates are private or added up securely.
        Weights that a selector prescribes beside a `Sampling.divisor` are used as they are: updates are added up. It
        goes without ``work`` and ``trained``, and needs ``draws_samples = True``

    Examples
    --------
    >>> import numpy as np
    >>> cohort = Cohort(np.array([3, 7]), weights=np.array([0.25, 0.75]))
    >>> cohort.client.tolist(), cohort.draws is None
    ([3, 7], True)
    """

    client: IntArray
    draws: IntArray | None = None
    weights: FloatArray | None = None
    work: FloatArray | None = None
    allocation: Allocation | None = None
    trained: bool = False
    sampling: Sampling | None = None

    def part(self, kept: IntArray) -> "Cohort":
        """Return the members at these positions, with what is prescribed for them.

        Parameters
        ----------
        kept : positions among the clients, shape (k,)

        Examples
        --------
        >>> cohort = Cohort(np.array([3, 5, 8]), weights=np.array([0.2, 0.3, 0.5]))
        >>> cohort.part(np.array([0, 2])).client.tolist(), cohort.part(np.array([0, 2])).weights.tolist()
        ([3, 8], [0.2, 0.5])
        """
        return Cohort(
            self.client[kept],
            None if self.draws is None else np.asarray(self.draws)[kept],
            None if self.weights is None else np.asarray(self.weights)[kept],
            None if self.work is None else np.asarray(self.work)[kept],
            None if self.allocation is None else self.allocation.part(kept),
            self.trained,
            self.sampling,
        )

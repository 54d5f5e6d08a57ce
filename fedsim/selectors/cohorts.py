"""A selector's answer: the clients of a round, and what the method prescribes for them."""

from dataclasses import dataclass

import numpy as np

from fedsim.arrays import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """Resources that a method gives to the clients of a cohort; arrays of shape (m,), None for no change.

    Attributes
    ----------
    bandwidth_hz : band of each client's uplink, > 0; it sends with its whole power in that band
    transmit_power_dbm : power of each client's transmitter, at most its own; with a battery whose seconds on the air
        cost energy it draws that power over the amplifier's efficiency and the power of the circuit
    cpu_frequency : share of the device's full clock frequency at which it works, in (0, 1]; its work takes
        ``1 / share`` times as long, and ``share ** 2`` times the energy

    Examples
    --------
    >>> given = Allocation(bandwidth_hz=np.array([30e3, 60e3]), cpu_frequency=np.array([1.0, 0.5]))
    >>> cohort = Cohort(np.array([3, 7]), allocation=given)
    >>> kept = cohort.part(np.array([1])).allocation
    >>> kept.bandwidth_hz.tolist(), kept.cpu_frequency.tolist(), kept.transmit_power_dbm is None
    ([60000.0], [0.5], True)
    """

    bandwidth_hz: FloatArray | None = None
    transmit_power_dbm: FloatArray | None = None
    cpu_frequency: FloatArray | None = None

    def part(self, kept: IntArray) -> "Allocation":
        """Return the resources of the members at these positions.

        Parameters
        ----------
        kept : positions among the clients, shape (k,)
        """
        return Allocation(**{name: None if value is None else value[kept] for name, value in vars(self).items()})


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Samples that each client of a cohort draws among its own, on which alone it works.

    Attributes
    ----------
    probability : by which a client draws each of its samples, in (0, 1]
    divisor : what the client divides by: it sends its update times the number of samples drawn over this, and the
        server does not learn that number. None for the update itself, whose weight counts the samples drawn where
        `rounds.weights` counts samples
    bits : size of the message that tells the clients to draw
    has_model : whether the clients have the model from a question of this round, and the message is all that they get

    Examples
    --------
    >>> cohort = Cohort(np.array([3, 7]), sampling=Sampling(probability=0.5, divisor=100.0))
    >>> 120 * cohort.sampling.probability  # samples that a client with 120 draws on average
    60.0
    >>> 60 / cohort.sampling.divisor  # factor of the update of a client that drew 60
    0.6
    """

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
    weights : aggregation weight of each client; by samples (FedAvg) if None
    work : share of the local work that each client does, in (0, 100]; all of it if None. Above 1 the client does that
        many times the local work of the scenario: its epochs go on. Seconds, energy and the training have that share,
        rounded up to whole steps up to 1, and down above; the update is as large as always
    allocation : radio and computing resources of each client; those of the scenario if None
    trained : whether all clients of the cohort have done their work for an answer of this round (`Answers.update_norm`)
        They send the update that they have: a message without bits tells them to, and they do no work.
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

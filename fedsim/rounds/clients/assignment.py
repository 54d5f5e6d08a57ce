"""What a cohort is sent to do: a message down, local work, a message up."""

import math
from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np

from fedsim.arrays import FloatArray, IntArray
from fedsim.learning import Learner
from fedsim.measurements import forward_passes, numbers_up
from fedsim.network import Links
from fedsim.per_client import Values
from fedsim.units import BITS_PER_FLOAT32


class Workload:
    """Bits and samples of one participation: a model down, training, an update up, and measurements beside these.

    Parameters
    ----------
    learner : Learner
    needs : measurements of delivered updates for the selector, some of `fedsim.measurements.MEASUREMENTS`
    masked : returns the size of a masked update of some size; None for updates in clear

    Attributes
    ----------
    down_bits : size of a model; 0 if the learner states none
    up_bits : size of an update and of the measurements sent with it
    samples : each client's whole work as a number of training samples, shape (K,)
    down_sizes, up_sizes : bits of both messages for each width of the model, shape (L,); the first ones are the above

    Examples
    --------
    >>> from fedsim.learning import NoLearning
    >>> from fedsim.streams import Streams
    >>> learner = NoLearning(model_bits=1e6, samples_per_client=[40, 25]).build(clients=2, streams=Streams(0))
    >>> work = Workload(learner, needs=["loss"])
    >>> work.down_bits, work.up_bits, work.samples.tolist()  # the loss is a number of 32 bits
    (1000000.0, 1000032.0, [40.0, 25.0])
    """

    def __init__(
        self, learner: Learner, needs: Collection[str] = (), masked: Callable[[float], float] | None = None
    ) -> None:
        self.learner = learner
        self.down_bits = learner.model_bits or 0.0
        beside = numbers_up(needs) * BITS_PER_FLOAT32
        update_bits = learner.update_bits or 0.0
        self.up_bits = (update_bits if masked is None else masked(update_bits)) + beside
        self.widths = widths = learner.widths
        self.down_sizes = np.array([self.down_bits]) if widths is None else widths.down_bits
        self.up_sizes = np.array([self.up_bits]) if widths is None else widths.up_bits + beside
        every_client, passes = np.arange(learner.samples.size, dtype=np.int64), forward_passes(needs)
        self.samples: FloatArray = learner.work_samples(every_client)
        if passes:
            self.samples = self.samples + passes * learner.probe_samples(every_client, None)

    def of(self, client: IntArray, level: IntArray | None) -> tuple[Values, Values, FloatArray]:
        """Return the bits down and up of clients, and their work in samples, shape (n,).

        Parameters
        ----------
        client : ids, shape (n,)
        level : place of each client's width, shape (n,); None for the whole model
        """
        samples = self.samples[client]
        if self.widths is None or level is None or not level.any():
            return self.down_bits, self.up_bits, samples
        return self.down_sizes[level], self.up_sizes[level], samples * self.widths.flops[level]


class Assignment(NamedTuple):
    """A message down, local work and a message up, for each of the n members of a cohort.

    Attributes
    ----------
    client : ids, shape (n,)
    number : round in which the participations begin
    draw : key of the participations' random numbers; the number of the round if no client is sent twice in a round
    availability_s, availability_draw : instant at which the clients' availability is evaluated, and the draw of
        availability that holds then
    bits : sizes of the message down and of the message up; of each client where they train models of several widths
    samples : that each client passes through its model in its whole work, shape (n,)
    compute_s : duration of each client's whole work, shape (n,)
    deadline_s : instant after which an answer is late; inf for none
    least_share : smallest share of its work to which a client shortens it to meet the deadline; 1 for no shortening
    mean_uplink_s : mean duration of each client's message up, by which work is shortened, shape (n,); None for no
        shortening
    waits_for_all : whether the server waits for every answer without a limit
    why_all : what waits so, and what is allowed, in words
    links : those of the cohort where a selector has allocated bands or powers; None for the run's
    cpu_frequency : share of the full clock frequency at which each client works, shape (n,); None for all of it
    transmit_power_dbm : radiated power that each client was given for its uplink, shape (n,); None for its own
    """

    client: IntArray
    number: int
    draw: int
    availability_s: float
    availability_draw: int
    bits: tuple[Values, Values]
    samples: FloatArray
    compute_s: FloatArray
    deadline_s: float = math.inf
    least_share: float = 1.0
    mean_uplink_s: FloatArray | None = None
    waits_for_all: bool = False
    why_all: str = "the policy waits for every client; choose one with a deadline"
    links: Links | None = None
    cpu_frequency: FloatArray | None = None
    transmit_power_dbm: FloatArray | None = None

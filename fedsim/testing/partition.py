"""The contract check of partitions."""

from functools import partial

import numpy as np

from fedsim.arrays import IntArray
from fedsim.capabilities import USERS
from fedsim.learning import Partition
from fedsim.learning.data.partitions.contracts import PARTITION
from fedsim.streams import Streams
from fedsim.testing.examination import Examination, at_least_two


def check_partition(partition: Partition, *, clients: int = 8, samples: int = 400, seed: int = 0) -> None:
    """Check that a partition keeps the contract of `fedsim.learning.Partition`; return None if it does.

    It divides sets of one, three and ten labels, for one client and for several. It must

    * return one array of sample numbers for each client, each number within the set,
    * give no sample to two clients, nor twice to one,
    * return the same again for the same seed, whatever it was asked in between: its draws come from the streams,
    * leave the labels alone, which are read-only.

    Parameters
    ----------
    partition : with its options
    clients : of the usual crowd, at least 2
    samples : of the training set, at least 2
    seed : of labels and streams, >= 0

    Raises
    ------
    ContractError
        Naming the partition, the fault and the trial.
    ScenarioError
        If it refuses the trial, for example because it needs more samples.
    ValueError
        If ``clients`` or ``samples`` is too small to check anything.

    Examples
    --------
    >>> from fedsim.learning import DirichletPartition
    >>> check_partition(DirichletPartition(alpha=0.5))
    """
    at_least_two(clients=clients, samples=samples)
    for classes, count in ((10, clients), (3, clients), (1, clients), (10, 1)):
        part = Examination(partition, f"in the trial with {classes} labels and {count} clients")
        labels = np.random.default_rng([seed, classes]).integers(0, classes, samples)
        _assigned(part, partition, labels[::-1].copy(), classes, count, seed + 1)
        ask = partial(_assigned, part, labels=labels, classes=classes, clients=count, seed=seed)
        part.steady("assign", partition, ask)


def _assigned(
    part: Examination, partition: Partition, labels: IntArray, classes: int, clients: int, seed: int
) -> list[IntArray]:
    users = [np.arange(labels.size) % (clients + 2)] if USERS in partition.requires else []
    answer: object = part.ask("assign", partition.assign, labels, classes, clients, Streams(seed), *users)
    found: list[IntArray] = part.kept(PARTITION, "assign", answer, labels=labels, clients=clients)
    return found

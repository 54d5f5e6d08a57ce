"""Users as clients, by hand."""

import numpy as np

from fedsim.learning.data.partitions.natural import NaturalPartition
from fedsim.streams import Streams

# Users 7, 2, 9 have 2, 3 and 1 samples.
USERS = np.array([7, 2, 2, 9, 7, 2])


def parts(clients, seed=0, **options):
    split = NaturalPartition(**options)
    return [part.tolist() for part in split.assign(np.zeros(6, np.int64), 1, clients, Streams(seed), USERS)]


def test_a_client_has_all_samples_of_its_user_in_their_order():
    assert parts(3, choose="first") == [[1, 2, 5], [0, 4], [3]]
    assert parts(2, choose="largest") == [[1, 2, 5], [0, 4]]
    assert parts(2, choose="first", min_samples=2) == [[1, 2, 5], [0, 4]]
    assert parts(4, choose="largest") == [[1, 2, 5], [0, 4], [3], []]
    seen = {tuple(map(tuple, parts(1, seed))) for seed in range(30)}
    assert seen == {((1, 2, 5),), ((0, 4),), ((3,),)}

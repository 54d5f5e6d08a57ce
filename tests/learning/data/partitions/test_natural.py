"""Users as clients, and divisions that files state; files that state none."""

import numpy as np
import pytest

from fedsim.errors import DataError
from fedsim.inputs.tables import reading
from fedsim.learning.data.partitions.natural import FilePartition, NaturalPartition
from fedsim.streams import Streams

# Users 7, 2, 9 have 2, 3 and 1 samples.
USERS = np.array([7, 2, 2, 9, 7, 2])


def of_users(clients, seed=0, **options):
    split = NaturalPartition(**options)
    return [part.tolist() for part in split.assign(np.zeros(6, np.int64), 1, clients, Streams(seed), USERS)]


def test_a_client_has_all_samples_of_its_user_in_their_order():
    assert of_users(3, choose="first") == [[1, 2, 5], [0, 4], [3]]
    assert of_users(2, choose="largest") == [[1, 2, 5], [0, 4]]
    assert of_users(2, choose="first", min_samples=2) == [[1, 2, 5], [0, 4]]
    assert of_users(4, choose="largest") == [[1, 2, 5], [0, 4], [3], []]
    seen = {tuple(map(tuple, of_users(1, seed))) for seed in range(30)}
    assert seen == {((1, 2, 5),), ((0, 4),), ((3,),)}


def parts(path, samples=5, clients=3):
    return [
        part.tolist()
        for part in FilePartition(path=str(path)).assign(np.zeros(samples, np.int64), 1, clients, Streams(0))
    ]


def test_row_by_row_or_by_the_number_of_the_sample(tmp_path):
    plain, numbered, packed = (tmp_path / name for name in ("a.csv", "b.csv", "c.npz"))
    plain.write_text("client,writer\n2,x\n0,y\n-1,z\n2,x\n0,x\n")
    assert parts(plain) == [[1, 4], [], [0, 3]]
    numbered.write_text("sample,client\n4,1\n0,2\n")
    assert parts(numbered) == [[], [4], [0]]
    for name in ("index", "sample_id", " idx"):
        numbered.write_text(f"{name},client\n4,1\n0,2\n")
        assert parts(numbered) == [[], [4], [0]]
    np.savez(packed, client=np.array([0, 1, 2, 1, -1]))
    assert parts(packed) == [[0], [1, 3], [2]]
    path = tmp_path / "DIVISION.CSV"
    path.write_text("client\n2\n0\n-1\n2\n0\n")
    assert parts(path) == [[1, 4], [], [0, 3]]
    path.write_text("Unnamed: 0,client\n4,0\n3,1\n2,2\n1,0\n0,1\n")
    with reading() as run:
        assert parts(path) == [[0, 3], [1, 4], [2]]
    assert "rows are those of samples 0, 1, ...: Unnamed: 0 is no column sample" in run.notes[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("user\n1\n", "there is no column 'client'; its columns: user"),
        ("client\n0\n1\n", "has 2 rows; there must be one for each of the 5 training samples"),
        ("client\n0\n1\n3\n0\n0\n", "client, row 3: '3' is not allowed; allowed: whole numbers from 0 to 2, -1 for no"),
        ("client\n0\n1\n-2\n0\n0\n", "client, row 3: '-2' is not allowed"),
        ("client\n0\n\n1\n1\n0\n", "client, row 2: nothing is not allowed; allowed: whole numbers"),
        ("client\n0\n1\n1\nx\n0\n", "client, row 4: 'x' is not allowed; allowed: whole numbers"),
        ("client,client\n0,1\n0,1\n0,1\n0,1\n0,1\n", "two columns 'client'; allowed: one of each name"),
        ("sample,client\n5,0\n", "sample, row 1: '5' is not allowed; allowed: 0 to 4"),
        ("sample,client\n1,0\n1,2\n", "sample 1 has two rows"),
        ("client,Index\n1,0\n1,5\n", "Index, row 2: '5' is not allowed; allowed: 0 to 4"),
    ],
)
def test_what_states_no_division_is_refused_by_name(tmp_path, text, words):
    path = tmp_path / "wrong.csv"
    path.write_text(text)
    with pytest.raises(DataError) as refused:
        parts(path)
    assert words in str(refused.value)
    assert str(path) in str(refused.value)


def test_arrays_that_state_no_division_are_refused(tmp_path):
    path = tmp_path / "unlike.npz"
    np.savez(path, client=np.array([0, 1, 2]), sample=np.array([0, 1]))
    with pytest.raises(DataError, match="sample: it has 2 rows and the table 3"):
        parts(path)

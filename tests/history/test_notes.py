"""Notes on runs that ended, and yet went wrong; tables worked by hand."""

import numpy as np
import pyarrow as pa
import pytest

from fedsim.history.notes import Rates, notes_of


class Tables:
    """The columns that notes read."""

    def __init__(self, selected, delivered, leakage=(0.0,), loss=(), version=None, noise=()):
        self.columns = {
            "selected": selected,
            "delivered": delivered,
            "late": [a - b for a, b in zip(selected, delivered, strict=True)],
            **dict.fromkeys(("dropped", "stale_used"), [0] * len(selected)),
            "largest_leakage": leakage,
            "loss": loss,
            "start_s": np.arange(len(selected)) * 2.0,
            "end_s": np.arange(len(selected)) * 2.0 + 1.5,
            "downlink_s": [0.2, 0.1],
            "compute_s": [5.4, 9.8],
            "uplink_s": [0.0, 3e-17],
            "queue_s": [0.0, 0.0],
            "noise_to_signal": noise,
            "model_version": range(1, len(selected) + 1) if version is None else version,
        }

    def column(self, _table, name):
        return np.array(self.columns[name])

    def known(self, _table, name):
        return np.ones(len(self.columns[name]), dtype=bool)


def batch(**columns):
    rows = {"client": [3, 4], "round": [1, 2], "outcome": ["delivered"] * 2}
    sent = {"downlink_bits": [1e6] * 2, "downlink_s": [1.0] * 2, "uplink_bits": [1e6] * 2, "uplink_s": [1.0, 2.0]}
    given = {**rows, **sent, **columns}
    return pa.RecordBatch.from_pydict({**given, "outcome": pa.array(given["outcome"]).dictionary_encode()})


@pytest.mark.parametrize(
    ("selected", "delivered", "note"),
    [
        ([10, 10], [0, 0], "nothing was delivered: 0 of 20 participations; 20 late, 0 dropped"),
        ([1000, 1000], [50, 49], "nearly nothing was delivered: 99 of 2,000 participations; 1,901 late, 0 dropped"),
        ([1000, 1000], [50, 50], None),
        ([], [], None),
    ],
)
def test_a_run_that_delivers_nothing_says_so(selected, delivered, note):
    spent = "; they spent up to 0.2 s on the downlink, 9.8 s on work, 0 s on the uplink, and rounds lasted up to 1.5 s"
    assert notes_of(Tables(selected, delivered)) == ([] if note is None else [note + spent])


@pytest.mark.parametrize(("noise", "told"), [([0.5, 4.0, 2.5], "2.5 times the energy"), ([0.5, 4.0, 1.0], None)])
def test_noise_above_the_updates_is_named(noise, told):
    notes = notes_of(Tables([2] * 3, [2] * 3, noise=noise))
    assert [told in note for note in notes] == [True] * (told is not None)


@pytest.mark.parametrize(("leaked", "spent"), [(9.89, False), (9.9, True), (10.0, True)])
def test_a_spent_budget_is_named(leaked, spent):
    notes = notes_of(Tables([2], [2], [1.0, leaked]), budget=10.0)
    assert bool(notes) == spent
    if spent:
        assert notes[0].startswith(f"a privacy budget is spent: the largest leakage is {leaked:.4g} of 10 epsilon")
    assert notes_of(Tables([2], [2], [1.0, leaked])) == [], "without privacy"


@pytest.mark.parametrize(
    ("columns", "note"),
    [
        ({}, ""),
        ({"uplink_bits": [32.0, 0.0], "uplink_s": [1.9e-10, 0.0]}, "1.68e+11 bit/s"),
        ({"downlink_s": [1.0, 2e6]}, "the downlink of client 4 in round 2: 1e+06 bits in 2e+06 s, 0.5 bit/s"),
        ({"downlink_s": [1.0, 2e6], "outcome": ["delivered", "late"]}, ""),
        ({"uplink_s": [0.0, 0.0]}, ""),
    ],
)
def test_absurd_rates_are_named(columns, note):
    rates = Rates()
    rates.see(batch())
    rates.see(batch(**columns))
    assert bool(rates.note()) == bool(note)
    assert note in rates.note()
    assert notes_of(Tables([2], [2]), rates) == ([rates.note()] if note else [])


@pytest.mark.parametrize(
    ("delivered", "version", "note"),
    [
        ([3, 0], [0, 0], "no model was made: the updates of 2 rounds, 3 in all, were too few each time"),
        ([3, 3], [0, 1], ""),
        ([0, 0], [0, 0], "nothing was delivered"),
        ([], [], ""),
    ],
)
def test_a_run_without_any_new_model_says_so(delivered, version, note):
    notes = notes_of(Tables([3] * len(delivered), delivered, version=version))
    assert len(notes) == bool(note)
    assert note in "".join(notes)

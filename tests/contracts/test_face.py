"""What holds for every check: it has a name, and refuses trials that check nothing."""

from pathlib import Path

import pytest

from fedsim import testing


def test_every_check_has_a_name_and_loads():
    found = {
        line.split("(")[0].removeprefix("def ")
        for path in Path(testing.__file__).parent.glob("*.py")
        for line in path.read_text().splitlines()
        if line.startswith("def check_")
    }
    assert found == set(testing.__all__) == set(dir(testing))
    assert all(callable(getattr(testing, name)) for name in found)


@pytest.mark.parametrize(
    ("check", "size", "words"),
    [
        ("aggregation", "more", "parameters and more"),
        ("availability", "clients", "clients: 1 is not allowed"),
        ("compressor", "draws", "tensors and draws"),
        ("compute_time", "clients", "clients: 1 is not allowed"),
        ("discipline", "jobs", "jobs: 1 is not allowed"),
        ("fading", "probabilities", "probabilities: 1 is not allowed"),
        ("local_algorithm", "rounds", "clients and rounds"),
        ("network", "clients", "clients and draws: 1 and 48"),
        ("partition", "samples", "clients and samples"),
        ("path_loss", "distances", "distances: 1 is not allowed"),
        ("selector", "clients", "at least 2"),
        ("selector", "rounds", "at least 2"),
        ("server_optimizer", "steps", "parameters and steps"),
    ],
)
def test_trials_too_small_to_check_anything_are_refused_whatever_the_part(check, size, words):
    with pytest.raises(ValueError, match=words):
        getattr(testing, f"check_{check}")(None, **{size: 1})

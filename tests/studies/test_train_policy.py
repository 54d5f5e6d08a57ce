"""The study that trains a policy, at tiny size."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="the extra 'gym' is not installed")

FOLDER = Path(__file__).parents[2] / "scenarios" / "gymnasium"


@pytest.fixture
def study(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    yield importlib.import_module("train_policy")
    for name in ("train_policy", "reinforce", "policy"):
        sys.modules.pop(name, None)


def test_it_trains_compares_and_draws(study, tmp_path, monkeypatch, capsys):
    """With a target of 30 % an episode has one or two rounds."""
    monkeypatch.setitem(study.EPISODE["rounds"], "target_accuracy", 0.3)
    monkeypatch.setattr(sys.modules["reinforce"], "CROWDS", 1)
    study.main(updates=1, held_out=2, out=tmp_path)
    said = capsys.readouterr().out
    assert "policy - uniform" in said
    assert (tmp_path / "policy.png").exists()


def test_cohorts_are_drawn_as_plackett_and_luce_say(study):
    """The first client is drawn with probability exp(score) over their sum: of weights 1, 2, 5, 3 in eight."""
    import torch

    policy = sys.modules["policy"]
    scores = torch.log(torch.tensor([1.0, 2.0, 5.0]))
    generator = torch.Generator().manual_seed(4)
    first = [int(torch.argmax(policy.with_noise(scores, generator))) for _ in range(4000)]
    counts = np.bincount(first, minlength=3) / 4000
    np.testing.assert_allclose(counts, [1 / 8, 2 / 8, 5 / 8], atol=4 * np.sqrt(0.25 / 4000))
    bounded = policy.in_bounds(torch.tensor([3.0, -torch.inf, 7.0]))
    assert bounded.tolist() == [0.0, -1.0, 1.0]

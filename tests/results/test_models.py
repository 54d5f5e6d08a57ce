"""The models that a run leaves in its folder, and in its history."""

import json

import numpy as np
import pytest
import torch
from safetensors import numpy as files
from torch import nn

from fedsim import Component, load_model, read_run, run, simulate
from fedsim.errors import RunError
from fedsim.learning import DATASETS, MODELS
from fedsim.results import models
from tests.support.run_folders import LEARNING, stopped
from tests.support.short_runs import TIMING

SCENARIO = TIMING.replace({"learning": LEARNING, "rounds.count": 4})


class Wide(Component):
    """A model of the user's own."""

    width: int = 5

    def build(self, shape, classes):
        return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), self.width), nn.Linear(self.width, classes))


OWN = SCENARIO.replace({"learning.model": Wide(width=7)})


def accuracy_of(module):
    """Return the share of the test digits that a module classifies correctly; images are scaled to [-1, 1]."""
    data = DATASETS.make("digits").load(None)
    images = torch.tensor(data.test_x).permute(0, 3, 1, 2) * (2.0 / data.pixel_max) - 1.0
    with torch.inference_mode():
        found = module(images).argmax(1)
    return float((found == torch.tensor(data.test_y)).double().mean())


def test_the_final_model_is_the_one_that_was_evaluated_last(tmp_path):
    history = run(SCENARIO, tmp_path / "run")
    expected = history.column("evaluations", "accuracy")[-1]
    found = [history, read_run(tmp_path / "run"), simulate(SCENARIO), tmp_path / "run"]
    for module in map(load_model, found):
        assert not module.training
        assert accuracy_of(module) == pytest.approx(expected)
    with models.safetensors.safe_open(tmp_path / "run" / "model.safetensors", "numpy") as opened:
        about = json.loads(opened.metadata()["fedsim"])
    model = {"kind": "mlp", "train": [], "hidden": [8]}
    assert about == {"model": model, "shape": [1, 8, 8], "classes": 10, "round": 4}


def test_each_nth_model_is_kept_and_a_replay_leaves_it(tmp_path):
    stopped(SCENARIO, tmp_path / "run", 3, save_models=2)
    with pytest.raises(RunError, match=r"not finished; there are models after the rounds 2"):
        load_model(tmp_path / "run")
    made = (tmp_path / "run" / models.model_of_round(2)).stat().st_mtime_ns
    history = run(SCENARIO, tmp_path / "run", save_models=2)
    assert (tmp_path / "run" / models.model_of_round(2)).stat().st_mtime_ns == made
    accuracy = history.column("evaluations", "accuracy")
    for number in (2, 4):
        assert accuracy_of(load_model(tmp_path / "run", after_round=number)) == pytest.approx(accuracy[number])
    with pytest.raises(RunError, match="no model after round 3; there are models after the rounds 2, 4"):
        history.model(after_round=3)
    run(SCENARIO, tmp_path / "run", replace=True)
    assert not list((tmp_path / "run" / "models").iterdir())


def test_a_round_can_have_the_newest_model(tmp_path):
    seen = []
    history = simulate(SCENARIO, on_round=lambda progress: seen.append(progress.weights()))
    final = {name: values.numpy() for name, values in history.model().state_dict().items()}
    assert final.keys() == seen[-1].keys()
    assert all(np.array_equal(final[name], seen[-1][name]) for name in final)
    assert any(not np.array_equal(seen[0][name], seen[-1][name]) for name in final)


def test_a_timing_only_run_has_no_model(tmp_path):
    timing = SCENARIO.replace({"learning": "none"})
    run(timing, tmp_path / "run", save_models=1)
    for of in (simulate(timing), tmp_path / "run", read_run(tmp_path / "run")):
        with pytest.raises(RunError, match="timing only"):
            load_model(of)


def test_a_class_of_the_users_own_is_built_only_if_the_caller_names_it(tmp_path, monkeypatch):
    history = run(OWN, tmp_path / "run")
    expected = history.column("evaluations", "accuracy")[-1]
    loaded = []
    monkeypatch.setattr(MODELS, "load", loaded.append)
    with pytest.raises(RunError, match=r"Wide.*if you trust the code"):
        load_model(tmp_path / "run")
    assert not loaded, "nothing was imported"
    monkeypatch.undo()
    assert accuracy_of(load_model(tmp_path / "run", Wide(width=7))) == pytest.approx(expected)
    with pytest.raises(RunError, match="do not fit Wide"):
        load_model(tmp_path / "run", Wide(width=3))


def test_an_installed_package_may_register_a_kind(tmp_path, monkeypatch):
    monkeypatch.setattr(MODELS, "kinds", lambda: {**MODELS.builtin, "wide": f"{Wide.__module__}:Wide"})
    monkeypatch.setattr(MODELS, "load", lambda _: Wide)
    run(OWN, tmp_path / "run")
    assert load_model(tmp_path / "run")[1].out_features == 7


def test_a_file_that_is_no_model_is_refused_by_name(tmp_path, monkeypatch):
    run(SCENARIO, tmp_path / "run")
    path = tmp_path / "run" / "model.safetensors"
    monkeypatch.setattr(models, "checked_bytes", lambda *_: b"")  # which would refuse each as not the run's own
    for about in (None, "no json", "[]", "[" * 10**5, '{"model": {}, "shape": [0, 2], "classes": 2}'):
        files.save_file({"x": np.zeros(1)}, path, None if about is None else {"fedsim": about})
        with pytest.raises(RunError, match=r"model\.safetensors: cannot be read"):
            load_model(tmp_path / "run")
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(RunError, match=r"model\.safetensors: cannot be read"):
        load_model(tmp_path / "run")


def test_the_interval_of_models_is_checked(tmp_path):
    with pytest.raises(RunError, match="save_models: 0 is not allowed"):
        run(SCENARIO, tmp_path / "run", save_models=0)
    assert not (tmp_path / "run").exists()

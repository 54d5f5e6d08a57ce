"""The executor that picks: the speeds that it is told decide; where it keeps the pick is read back."""

import json
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from fedsim import Scenario, simulate
from fedsim.errors import FedsimError
from fedsim.learning import MLP, Digits, ExecutorChoice, LocalTraining, TrainingSetup
from fedsim.learning.executors.auto import auto, calibration, picks
from fedsim.learning.executors.contracts import Expected
from fedsim.learning.executors.sequential import SequentialExecutor
from fedsim.simulation import Simulation
from tests.support.short_runs import LEARNING

EXPECTED = Expected(samples=np.array([20, 20, 20, 60]), cohort=3, rounds=5)


class Slow(SequentialExecutor):
    """Waits 20 ms for each client; counts the clients that it was given."""

    trained = 0

    def train(self, jobs):
        type(self).trained += len(jobs)
        for job in jobs:
            time.sleep(0.02)
            yield from super().train([job])


class Quick(SequentialExecutor):
    """Other bits than the sequential one by its own word."""

    fingerprint = "quick"


class Refusing(SequentialExecutor):
    def __init__(self, setup: TrainingSetup, device: str = "cpu") -> None:
        raise FedsimError(f"device: {device!r} is not allowed with the executor 'refusing'")


SLOW, QUICK, REFUSING = (f"{__name__}:{one.__name__}" for one in (Slow, Quick, Refusing))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Return the folder of picks, with two executors to compare in runs of any length."""
    monkeypatch.setenv("FEDSIM_CACHE", str(tmp_path))
    monkeypatch.setattr(auto, "CANDIDATES", (SLOW, REFUSING, QUICK))
    monkeypatch.setattr(auto, "WORTH_S", 0.0)

    def told(executor, *about):
        list(executor.train(calibration.jobs_like(*about[:2])))
        return {Slow: 40.0, Quick: 400.0}[type(executor)]

    monkeypatch.setattr(calibration, "updates_per_s", told)
    Slow.trained = 0
    return tmp_path / "executors"


def setup(**options):
    return TrainingSetup(MLP(hidden=(4,)), Digits(train_limit=120).load(), LocalTraining(), 0, **options)


def picked():
    return auto.AutoExecutor(setup(expected=EXPECTED)).kind


def kept(cache):
    (path,) = cache.iterdir()
    return dict(json.loads(path.read_text()))


def test_the_fastest_is_picked_and_kept_and_the_next_run_compares_nothing(cache):
    assert picked() == QUICK
    told = kept(cache)
    assert told["pick"] == QUICK
    assert told["updates_per_s"] == {SLOW: 40.0, QUICK: 400.0}
    before = Slow.trained
    assert picked() == QUICK
    assert Slow.trained == before > 0
    (path,) = cache.iterdir()
    path.write_text(path.read_text().replace(f'"pick": "{QUICK}"', f'"pick": "{SLOW}"'))
    assert picked() == SLOW, "what is kept is followed"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pick": 3}', '{"pick": "gone", "key": {}}', "\x00\xff"])
def test_a_damaged_file_is_noticed_and_written_again(cache, content):
    picked()
    (path,) = cache.iterdir()
    path.write_text(content)
    with pytest.warns(RuntimeWarning, match=r"\.json .*executors are compared again"):
        assert picked() == QUICK
    assert kept(cache)["pick"] == QUICK


def test_a_cache_that_cannot_be_written_is_noticed(cache):
    cache.write_text("no folder")
    with pytest.warns(RuntimeWarning) as told:
        assert picked() == QUICK
    assert ["cannot be read" in str(told[0].message), "cannot be written" in str(told[1].message)] == [True, True]


def test_of_two_processes_that_compare_at_once_the_first_to_write_decides(cache):
    key = picks.key_of(setup(), EXPECTED, "cpu")
    assert picks.keep(key, SLOW, {SLOW: 2.0}, (SLOW, QUICK)) == SLOW
    assert picks.keep(key, QUICK, {QUICK: 3.0}, (SLOW, QUICK)) == SLOW
    assert [path.suffix for path in cache.iterdir()] == [".json"]


def test_a_short_run_compares_nothing(cache, monkeypatch):
    monkeypatch.setattr(auto, "WORTH_S", 30.0)
    assert picked() == SLOW
    assert auto.AutoExecutor(setup()).kind == SLOW
    assert Slow.trained == 0
    assert not cache.exists()


def test_a_run_is_long_by_its_steps_or_by_its_operations():
    # 5 rounds of 3 clients with 1.5 steps on average (20 samples in a step of 20, or 60 in three), 0.3 ms each; the
    # perceptron 64-4-10 takes 2 * 3 * (64 * 4 + 4 * 10) operations a sample, which adds less than a microsecond each.
    expected_s = 5 * 3 * 1.5 * 0.3e-3
    assert calibration.is_long(setup(), EXPECTED, 0.99 * expected_s)
    assert not calibration.is_long(setup(), EXPECTED, 1.05 * expected_s)
    operations = 5 * 3 * 30 * 2 * 3 * (64 * 4 + 4 * 10) / 50e9
    assert calibration.is_long(setup(), EXPECTED, expected_s + 0.99 * operations)
    assert not calibration.is_long(setup(), EXPECTED, expected_s + 1.01 * operations)


def test_jobs_of_a_comparison_have_typical_sizes_and_never_more_than_a_cohort():
    jobs = calibration.jobs_like(setup(), Expected(np.array([30, 10, 20]), cohort=3, rounds=5))
    assert [job.rows.size for job in jobs] == [10, 20, 30]
    assert [job.work for job in jobs] == [1.0] * 3
    # Of ten epochs over 100,000 samples each, four jobs are left, which together take half a second by the estimate.
    long = TrainingSetup(MLP(hidden=(4,)), Digits().load(), LocalTraining(epochs=10), 0)
    crowd = Expected(samples=np.full(50, 100_000), cohort=50, rounds=5)
    jobs = calibration.jobs_like(long, crowd)
    assert len(jobs) == 4
    assert sum(job.work for job in jobs) * calibration.training_s(long, crowd)[0] == pytest.approx(0.5)
    # More than half of the crowd is never trained; the others are typical.
    jobs = calibration.jobs_like(setup(), Expected(np.array([0, 0, 30, 0, 10]), cohort=2, rounds=5))
    assert {job.rows.size for job in jobs} <= {10, 30}
    assert all(job.work > 0 for job in jobs)


def test_a_measurement_is_that_of_the_executor_and_ends_early_far_behind():
    executor = Slow(setup())
    Slow.trained = 0
    # It waits 20 ms for a client.
    assert 0 < calibration.updates_per_s(executor, setup(), EXPECTED) <= 50
    assert Slow.trained == 4 * EXPECTED.cohort
    Slow.trained = 0
    # The short jobs, a tenth of the whole ones, take at least 20 ms each too.
    assert 0 < calibration.updates_per_s(executor, setup(), EXPECTED, to_beat=1e6) <= 5
    assert Slow.trained == 2 * EXPECTED.cohort


@pytest.mark.parametrize(
    ("speeds", "expected"),
    [({"a": 1.0}, "a"), ({"a": 1.0, "b": 1.05}, "a"), ({"a": 1.0, "b": 1.2, "c": 1.3}, "b"), ({"a": 1, "b": 9}, "b")],
)
def test_a_later_one_must_be_clearly_faster(speeds, expected):
    assert calibration.fastest(speeds) == expected


def test_no_executor_for_a_device_names_what_each_of_them_says(cache, monkeypatch):
    monkeypatch.setattr(auto, "CANDIDATES", ("sequential", REFUSING))
    with pytest.raises(
        FedsimError, match=r"(?s)device 'abacus'.*'sequential'.*'abacus' is not allowed with .*'refusing'"
    ):
        auto.AutoExecutor(setup(expected=EXPECTED), "abacus")


def test_what_matters_for_speed_has_a_pick_of_its_own(cache):
    def path_of(one, expected, device="cpu"):
        return picks._path(picks.key_of(one, expected, device))

    usual = path_of(setup(), EXPECTED)
    changes = ({"precision": "bfloat16"}, {"model": MLP(hidden=(5,))}, {"local": LocalTraining(epochs=2)})
    paths = {usual, *(path_of(replace(setup(), **change), EXPECTED) for change in changes)}
    paths |= {path_of(setup(), Expected(EXPECTED.samples, 12, 5)), path_of(setup(), EXPECTED, "cuda:1")}
    assert len(paths) == 6
    assert path_of(setup(), Expected(EXPECTED.samples, 3, 500)) == path_of(replace(setup(), seed=5), EXPECTED) == usual


def test_a_run_has_the_same_draws_and_results_with_a_comparison_and_without(cache):
    scenario = Scenario.from_toml(LEARNING)
    plain = simulate(scenario, executor=QUICK)
    torch.manual_seed(3)
    state = torch.get_rng_state()
    run = Simulation(scenario, executor="auto")
    assert (run.executor_used.kind, run.executor_used.fingerprint) == (QUICK, "quick")
    assert ExecutorChoice.again(run.executor_used).kind == QUICK
    assert torch.equal(torch.get_rng_state(), state)
    assert Slow.trained > 0
    found = run.run()
    assert found.evaluations.equals(plain.evaluations)
    assert found.participations.equals(plain.participations)


def test_it_is_the_default_and_the_environment_names_another(cache, monkeypatch):
    monkeypatch.delenv("FEDSIM_EXECUTOR")
    assert ExecutorChoice.of().kind == "auto"
    monkeypatch.setenv("FEDSIM_EXECUTOR", "sequential")
    assert ExecutorChoice.of().kind == "sequential"

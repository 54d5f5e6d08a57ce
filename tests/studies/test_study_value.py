"""A study is a value: what it describes, and what it refuses."""

import pytest

from fedsim import Scenario, Study
from fedsim.errors import FedsimError
from fedsim.selectors import Uniform
from tests.support.hand_made import by_hand
from tests.support.short_runs import LEARNING

BASE = Scenario(**by_hand())


def of(**what):
    return Study.of(BASE, **{"grid": {"selector.cohort": [1, 2]}, "seeds": 2, **what})


def test_a_grid_crosses_and_lists_go_side_by_side():
    study = of(grid={"selector.cohort": [1, 2]}, zipped={"rounds.count": [3, 4], "rounds.late": ["cancel", "stale"]})
    assert study.arms == (
        "count=3, late=cancel, cohort=1",
        "count=3, late=cancel, cohort=2",
        "count=4, late=stale, cohort=1",
        "count=4, late=stale, cohort=2",
    )
    assert [(point.variant, point.seed) for point in study.points[:5]] == [
        *((arm, 0) for arm in study.arms),
        (study.arms[0], 1),
    ]
    assert study.points[-1].scenario == BASE.replace({"rounds.count": 4, "rounds.late": "stale", "seed": 1})


def test_names_say_what_differs():
    policies = ["wait-for-all", {"kind": "deadline", "deadline_s": 5.0}]
    assert of(grid={"rounds.policy": policies}).arms == ("policy=wait-for-all", "policy=deadline deadline_s=5.0")
    paths = {"network.uplink.value_s": [1.0, 2.0], "network.downlink.value_s": [1.0]}
    assert of(grid=paths).arms[1] == "uplink.value_s=2.0, downlink.value_s=1.0"
    selectors = {"selector": [Uniform(1), Uniform(2)]}
    assert of(grid=selectors).arms == ("selector=Uniform cohort=1", "selector=Uniform cohort=2")


def test_a_target_of_another_metric_is_compared_where_nothing_is_named():
    learning = Scenario.from_toml(LEARNING).replace({"rounds.target": {"metric": "loss", "at_most": 0.5}})
    assert Study.of(learning).metrics == ("time_to_loss<=0.5", "mean_round_s")


def test_the_digest_is_that_of_the_runs_and_of_what_is_compared():
    study = of()
    same = Study.of(BASE, variants={"b": {"selector.cohort": 1}, "a": {"selector.cohort": 2}}, seeds=[1, 0])
    assert study.digest() == same.digest()
    others = [of(seeds=3), of(metrics=["simulated_s"]), of(horizon=5), of(level=0.9), of(baseline="cohort=2")]
    assert len({one.digest() for one in (study, *others)}) == 6


def test_it_goes_through_toml_and_back():
    study = of(grid={"rounds.policy": ["wait-for-all", {"kind": "deadline", "deadline_s": 5.0}]}, horizon={"s": 9.0})
    again = Study.from_toml(study.to_toml())
    assert again == study
    assert again.digest() == study.digest()


def test_what_is_within_a_table_is_set_after_it_whatever_the_order_of_a_file():
    """TOML writes values before tables."""
    late = {"kind": "stale", "max_staleness": 2}
    study = Study.of(BASE, variants={"a": {"rounds.late": late, "rounds.late.max_staleness": 3}}, seeds=1)
    again = Study.from_toml(study.to_toml())
    assert study.points[0].scenario.rounds.late.max_staleness == again.points[0].scenario.rounds.late.max_staleness == 3
    assert study.digest() == again.digest()


def test_a_file_names_its_base_and_paths_with_dots_or_without(tmp_path):
    (tmp_path / "base.toml").write_text(BASE.to_toml())
    (tmp_path / "study.toml").write_text(
        """
        [study]
        base = "base.toml"
        seeds = [3, 5]
        metrics = ["time_to_4updates"]
        horizon = { s = 60 }
        set = { "rounds.count" = 7 }
        grid = { selector.cohort = [1, 2], "rounds.late" = ["cancel", "stale"] }
        """
    )
    study = Study.load(tmp_path / "study.toml")
    assert study.paths == ("selector.cohort", "rounds.late")
    assert (study.base.rounds.count, study.seeds, study.metrics) == (7, (3, 5), ("time_to_4updates",))
    named = Study.from_toml(
        f'[study]\nbase = "{tmp_path}/base.toml"\n[study.variants.two]\nselector.cohort = 1\n[study.variants.base]\n'
    )
    assert [(v.name, v.values) for v in named.variants] == [("two", {"selector.cohort": 1}), ("base", {})]
    assert named.baseline == "two"


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ({"grid": {"seed": [1, 2]}}, "seed: is no value of a variant"),
        ({"grid": {"selector.cohort": 3}}, r"selector.cohort: 3 is not allowed; allowed: a list"),
        ({"grid": {"selector.cohort": [1, 1]}}, "variants: .* each name once"),
        ({"grid": {"selector.cohort": [0]}}, "variant 'cohort=0': selector: .* must be a whole number of at least 1"),
        ({"grid": {"selector.kind": ["unifrm"]}}, "did you mean 'uniform'"),
        ({"variants": {"a": {}, "b": {}}, "grid": None}, "'a' and 'b' describe the same runs"),
        ({"variants": {"a": {}}}, "with names, and a grid"),
        ({"zipped": {"rounds.count": [1, 2], "name": ["a"]}}, r"lists of \[1, 2\] values"),
        ({"zipped": {"selector.cohort": [1]}}, "selector.cohort: is in the grid and"),
        ({"seeds": [1, 1]}, r"seeds: \[1, 1\] is not allowed"),
        ({"seeds": [-1]}, r"seeds: \[-1\] is not allowed"),
        ({"seeds": 0}, r"seeds: \[\] is not allowed"),
        ({"metrics": ["time_to_80"]}, "metric: 'time_to_80' is not known"),
        ({"baseline": "cohort=3"}, r"baseline: 'cohort=3' is no variant \(did you mean"),
        ({"horizon": -1}, r"horizon.s: -1.0 is not allowed"),
        ({"horizon": {"km": 1.0}}, r"horizon.km: 1.0 is not allowed"),
        (
            {"grid": {"rounds.until_s": [60.0, 40.0]}, "metrics": ["time_to_9updates"], "horizon": 60},
            "variant 'until_s=40.0': time_to_9updates needs runs of 60 s, and rounds.until_s ends them at 40 s",
        ),
        ({"grid": {"rounds.until_s": [9.0]}, "metrics": ["loss@9.5s"]}, "loss@9.5s needs runs of 9.5 s"),
        ({"level": 95.0}, "level: 95.0 is not allowed"),
    ],
)
def test_what_is_refused(what, words):
    with pytest.raises(FedsimError, match=words):
        of(**what)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[study]\nseedz = 3\nbase='x'", r"study.seedz is not known \(did you mean 'seeds'"),
        ("[study]\nseeds = 3", "a study needs one base"),
        ("[study]\nbase = 'nowhere.toml'", "nowhere.toml: cannot be read"),
    ],
)
def test_what_is_refused_in_a_file(text, words):
    with pytest.raises(FedsimError, match=words):
        Study.from_toml(text)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["study.toml", "--seeds", "4"], "a study says itself what is run and compared"),
        (["study.toml", "--level", "0"], "a study says itself what is run and compared"),
        (["base.toml", "--grid", "selector.cohort=1,2", "--level", "0"], "level: 0.0 is not allowed"),
        (
            ["base.toml", "--grid", "selector.cohort=1,2", "--grid", "selector.cohort=3"],
            r"named twice, \[1, 2\] and \[3\]",
        ),
        (["base.toml", "--horizon", "30", "--horizon", "s=40"], "s: is named twice, 30.0 and 40.0"),
        (["base.toml", "--set", "seed=1", "--set", "seed=2"], "seed: is named twice, 1 and 2"),
    ],
)
def test_no_option_is_dropped_in_silence(line, words, tmp_path, monkeypatch):
    from fedsim.cli import app

    monkeypatch.chdir(tmp_path)
    (tmp_path / "base.toml").write_text(BASE.to_toml())
    (tmp_path / "study.toml").write_text(of().to_toml())
    with pytest.raises(FedsimError, match=words):
        app(["sweep", *line], standalone_mode=False)

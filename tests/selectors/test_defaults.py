"""What a selector does without options: what its page and the paper of its method say, number by number."""

import inspect

import numpy as np
import pytest

from fedsim.selectors import SELECTORS

PAUSE = {"tau_min_s": 0.05, "alpha": 100.0, "beta": 2.0, "gamma": 5.0, "time_index": "paper"}
ANNEALED = {**PAUSE, "zeta": 1.0, "iterations": 3000, "kappa": 30.0, "start": "random"}
CHEAP = {"down_bits": 256.0, "up_bits": 256.0}
OORT = {"alpha": 2.0, "exploration": 0.9, "exploration_decay": 0.98, "blacklist_share": 0.3, "samples_per_round": None}
LOSS = {"candidates": None, "weights": "equal"}
REFL = {"hold_off": 5, "adaptive_target": False, "least_share": 0.0, "slot_s": None, "initial_s": 1000.0, "alpha": 0.25}
DEFAULTS = {
    "all-compute": {"rule": "optimal", "iterations": 4, "up_bits": 32.0, "wait_s": None},
    "fedzero": {"step_s": 300.0, "longest_s": 3600.0, "reserve": 1.0, "alpha": 1.0},
    "pisces": {
        "beta": 0.5,
        "window": 5,
        "exploration": 0.9,
        "exploration_decay": 0.98,
        "exploration_least": 0.2,
        "samples_per_round": None,
    },
    "aocs": {"iterations": 4, "floor": 0.1},
    "adapow-d": {"first": None, "until": 100, "decay": "linear", "weights": "equal", "up_bits": 32.0, "wait_s": None},
    "active": {"alpha1": 0.75, "alpha2": 0.01, "alpha3": 0.1},
    "e3cs": {"quota": 0.5, "quota_from": None, "eta": 0.5, "draw": "multinomial"},
    "eafl": {
        "utility_share": 0.25,
        "alpha": 2.0,
        "exploration": 0.9,
        "exploration_decay": 0.98,
        "exploration_least": 0.2,
        "window": 20,
        "pacer_step_s": None,
    },
    "ocean": {
        "budget_j": 0.02,
        "v": 0.01,
        "pattern": "uniform",
        "rounds": 100,
        "frame": None,
        "bandwidth_hz": 10000000.0,
        "least_hz": 100000.0,
        "upload_s": 1.0,
        "transmit_power_dbm": 23.0,
        "snr_gap_db": 0.0,
        "state": "now",
    },
    "bn2-c": {"bandwidth_hz": 10000000.0, "upload_s": 1.0, "state": "now"},
    "bc-bn2": {"channels": None, "state": "now"},
    "age-based": {"alpha": 1.0, "bandwidth_hz": 10000000.0, "upload_s": 1.0, "state": "now"},
    "best-channel": {"state": "now"},
    "bsfl": {"tau_min_s": 0.05, "alpha": 1.0, "beta": 2.0, "time_index": "paper", "confidence": "cohort"},
    "clustered-similarity": {"similarity": "angle", "matrix": "paper", "noise": "as-sent"},
    "cpow-d": {**LOSS, "up_bits": 32.0, "wait_s": None},
    "cs-ucb": {"tau_max_s": 5.0},
    "cs-ucb-q": {"tau_max_s": 5.0, "weight": 0.1, "promise": 0.5, "rates": None},
    "divfl": {"start": "everybody", "refresh_every": None, "subset": None, "weights": "samples", "noise": "as-sent"},
    "fedcs": {"share": 0.1, "uploads": "serial", "overhead_s": 0.0, **CHEAP, "wait_s": None},
    "fedsuv": {
        "rho": 0.4,
        "elimination": "guard",
        "keep": None,
        "fill": "removed",
        "delta": 0.1,
        "ridge": 1.0,
        "scaling": "rank",
        "kernel": "rbf",
        "length_scale": None,
        "noise": 0.1,
        "fit": "likelihood",
        "basis": 1024,
        "utility_scale": None,
        "undelivered": "zero",
        "batch": "top",
        "negative_gain": "zero",
        "when_disjoint": "restart",
        "samples_per_round": None,
    },
    "importance": {"draw": "independent", "weights": "unbiased", "floor": 0.1, "noise": "as-sent"},
    "joint-bandwidth": {"bandwidth_hz": 10e6, "search": "greedy", "snr_gap_db": 0.0},
    "loss-proportional": {"data_exponent": 0.0},
    "oort": {
        **OORT,
        "exploration_least": 0.2,
        "window": 20,
        "pacer_step_s": None,
        "preferred": "crowd",
        "clip": 0.95,
        "cut_off": 0.95,
        "blacklist_after": 10,
        "by_speed": True,
        "pacer_asked": "round",
        "silent": "zero",
    },
    "oort-fedscale": {
        **OORT,
        "exploration_least": 0.3,
        "threshold": 30.0,
        "pacer_step": 20,
        "pacer_delta": 5.0,
        "clip": 0.9,
        "cut_off": 0.05,
        "sample_window": 5.0,
        "blacklist_after": None,
        "silent": "mean",
    },
    "pause": {**PAUSE, "zeta": 1.0},
    "pause-enumeration": {**PAUSE, "zeta": 1.0},
    "pause-genie": {**PAUSE, "expected_reward": None},
    "pause-vanilla-sa": ANNEALED,
    "pow-d": {**LOSS, "up_bits": 32.0, "wait_s": None},
    "refl": {**REFL, "periods_s": None, "harmonics": 4, "ridge": 1.0},
    "refl-oracle": {**REFL, "accuracy": 0.9, "rule": "paper"},
    "rpow-d": LOSS,
    "sa-pause": ANNEALED,
    "tifl": {
        "tiers": 5,
        "policy": "adaptive",
        "probabilities": None,
        "interval": 10,
        "credits": None,
        "profiling": "probe",
        "tries": 1,
        "evaluation": "losses",
        "improvement": "relative",
        "timeout_s": None,
        **CHEAP,
    },
    "weighted": {"weights": "equal"},
}
NEEDED = {"cohort": 3, "deadline_s": 2.0, "samples": 10}


def held(value):
    """Return what an object holds, all the way down."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: held(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [held(one) for one in value]
    return {"": type(value).__name__, **held(vars(value))} if hasattr(value, "__dict__") else value


@pytest.mark.parametrize("kind", sorted(SELECTORS.builtin))
def test_what_is_left_out(kind):
    made = SELECTORS.load(kind)
    options = inspect.signature(made).parameters.values()
    needed = {option.name: NEEDED[option.name] for option in options if option.default is option.empty}
    given = DEFAULTS.get(kind, {})
    assert {option.name for option in options} == {*needed, *given}
    assert repr(held(made(**needed))) == repr(held(made(**needed, **given)))


NUMBERS = [
    (kind, option)
    for kind, options in DEFAULTS.items()
    for option, value in {**options, "cohort": 1}.items()
    if isinstance(value, int | float) and not isinstance(value, bool) and (kind, option) != ("fedcs", "cohort")
]


@pytest.mark.parametrize(("kind", "option"), NUMBERS)
def test_no_number_is_negative(kind, option):
    made = SELECTORS.load(kind)
    needed = {name: NEEDED[name] for name in NEEDED if name in inspect.signature(made).parameters}
    with pytest.raises(ValueError, match=f"^{option}.* is not allowed"):
        made(**{**needed, option: -1})

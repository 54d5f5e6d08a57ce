"""Wrong scenario files: each is refused with a paragraph that names the field, and exit code 2."""

import sys

import pytest

from fedsim.cli import main
from fedsim.scenario import Scenario

GOOD = """
name = "small"
[crowd]
clients = 10
[learning]
data = { kind = "digits" }
model = { kind = "mlp", hidden = [8] }
local = { optimizer = "sgd", learning_rate = 0.1, batch_size = 10 }
[network]
kind = "cell"
uplink = { bandwidth_hz = 1e5, transmit_power_dbm = 23.0, noise_figure_db = 5.0 }
[rounds]
count = 2
policy = { kind = "deadline", deadline_s = 5.0 }
[selector]
kind = "uniform"
cohort = 3
"""

# what is wrong: (what to replace, by what, what the message must name)
WRONG = {
    "unknown key": ("clients = 10", "clients = 10\ncolour = 3", ["crowd.colour", "there is no such option"]),
    "misspelt key": ("count = 2", "cuont = 2", ["rounds.cuont", "did you mean 'count'", "allowed: count, policy"]),
    "unknown table": ("[crowd]", "[crowds]", ["crowds", "did you mean 'crowd'"]),
    "negative bandwidth": ("1e5", "-1e5", ["network.uplink.bandwidth_hz", "-100000.0", "greater than 0"]),
    "cohort larger than the crowd": ("cohort = 3", "cohort = 11", ["selector.cohort", "11", "crowd.clients = 10"]),
    "cohort of nobody": ("cohort = 3", "cohort = 0", ["selector", "cohort", "0"]),
    "no cohort": ("cohort = 3", "", ["selector.cohort", "is missing"]),
    "broken TOML": ("[rounds]", "[rounds", ["is not valid TOML", "line"]),
    "NaN": ("deadline_s = 5.0", "deadline_s = nan", ["rounds.policy.deadline_s", "nan", "finite"]),
    "infinite": (
        "transmit_power_dbm = 23.0",
        "transmit_power_dbm = inf",
        ["network.uplink.transmit_power_dbm", "inf", "finite"],
    ),
    "text for a number": ("count = 2", 'count = "2"', ["rounds.count", "'2'", "integer"]),
    "number for a text": ('name = "small"', "name = 7", ["name", "7", "string"]),
    "fraction for a count": ("clients = 10", "clients = 10.5", ["crowd.clients", "10.5", "integer"]),
    "yes for a count": ("clients = 10", "clients = true", ["crowd.clients", "True"]),
    "empty crowd": ("clients = 10", "clients = 0", ["crowd.clients", "0", "greater than or equal to 1"]),
    "zero deadline": ("deadline_s = 5.0", "deadline_s = 0.0", ["rounds.policy.deadline_s", "greater than 0"]),
    "unknown selector": ('"uniform"', '"unifrom"', ["selector", "did you mean 'uniform'", "pause"]),
    "unknown network": ('"cell"', '"sell"', ["network", "did you mean 'cell'"]),
    "unknown data": ('"digits"', '"digit"', ["learning.data", "did you mean 'digits'"]),
    "no kind": ('kind = "uniform"', "", ["selector", "needs a kind"]),
    "missing table": ('[network]\nkind = "cell"\nuplink', "uplink", ["network: is missing"]),
    "module that is not there": ('"uniform"', '"no.such.module:Selector"', ["selector", "cannot be loaded"]),
    "class that is no selector": ('"uniform"', '"collections:OrderedDict"', ["selector", "no method select"]),
    "option of another kind": ('kind = "uniform"', 'kind = "uniform"\nalpha = 2.0', ["selector.alpha", "cohort"]),
    "name with a slash": ('"small"', '"a/b"', ["name", "a/b"]),
    "negative seed": ('name = "small"', 'name = "small"\nseed = -1', ["seed", "-1"]),
    "drop out and wait for all": (
        'policy = { kind = "deadline", deadline_s = 5.0 }',
        'policy = "wait-for-all"\n[devices]\ndropout = { kind = "hazard", rate_per_s = 0.1 }',
        ["rounds.policy", "devices.dropout"],
    ),
    "timing only without the size of a model": (
        '[learning]\ndata = { kind = "digits" }\nmodel = { kind = "mlp", hidden = [8] }\n'
        'local = { optimizer = "sgd", learning_rate = 0.1, batch_size = 10 }\n',
        '[learning]\nkind = "none"\n',
        ["learning.model_bits", "learn"],
    ),
    "battery and wait for all": (
        'policy = { kind = "deadline", deadline_s = 5.0 }',
        'policy = "wait-for-all"\n[devices]\nenergy = { kind = "battery", capacity_j = 9.0, compute_w = 1.0 }',
        ["rounds.policy", "devices.energy"],
    ),
    "work paid for twice": (
        "[rounds]",
        '[devices.energy]\nkind = "battery"\ncapacity_j = 9.0\ncompute_w = 1.0\ncompute_j_per_flop = 1.0\n[rounds]',
        ["devices.energy", "both of compute_j_per_flop and compute_w", "exactly one of the two"],
    ),
    "work paid for by nothing": (
        "[rounds]",
        '[devices]\nenergy = { kind = "battery", capacity_j = 9.0 }\n[rounds]',
        ["devices.energy", "neither of compute_j_per_flop and compute_w", "exactly one of the two"],
    ),
    "misspelt battery": (
        "[rounds]",
        '[devices]\nenergy = "batery"\n[rounds]',
        ["devices.energy", "did you mean 'battery'"],
    ),
    "late clients kept by a word that is none": ("count = 2", 'count = 2\nlate = "keep"', ["rounds.late", "keep"]),
    "two wrong values at once": (
        'count = 2\npolicy = { kind = "deadline", deadline_s = 5.0 }',
        'count = -2\npolicy = { kind = "deadline", deadline_s = -5.0 }',
        ["rounds.count", "rounds.policy.deadline_s"],
    ),
}


def test_the_good_scenario_is_good():
    assert Scenario.from_toml(GOOD).crowd.clients == 10


@pytest.mark.parametrize("what", WRONG)
def test_wrong_values_are_refused(what, tmp_path, monkeypatch, capsys):
    old, new, said = WRONG[what]
    assert old in GOOD
    file = tmp_path / "wrong.toml"
    file.write_text(GOOD.replace(old, new))
    monkeypatch.setattr(sys, "argv", ["fedsim", "run", str(file), "--out", str(tmp_path / "run")])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert not (tmp_path / "run").exists()
    message = capsys.readouterr().err
    assert message.startswith(f"fedsim: {file}: ")
    assert "Traceback" not in message
    for words in said:
        assert words in message
    assert len(message.splitlines()) <= 4, "a paragraph, not a page"

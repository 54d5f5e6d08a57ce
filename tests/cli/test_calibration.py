"""The command ``fedsim calibrate`` as a user types it."""

import numpy as np
import pytest
from typer.testing import CliRunner

from fedsim import Scenario
from fedsim.cli import app
from fedsim.errors import FedsimError


@pytest.fixture
def log(tmp_path):
    rng = np.random.default_rng(1)
    lines = ["client,round,start_s,end_s,compute_s,uplink_s"]
    for number in range(40):
        for client in range(6):
            compute_s, uplink_s = 2.0 * np.exp(0.1 * rng.standard_normal(2))
            start_s = 5.0 * number
            lines.append(f"{client},{number + 1},{start_s},{start_s + compute_s + uplink_s},{compute_s},{uplink_s}")
    place = tmp_path / "log.csv"
    place.write_text("\n".join(lines))
    return place


def fedsim(*arguments):
    done = CliRunner().invoke(app, ["calibrate", *map(str, arguments)], env={"COLUMNS": "200"})
    if isinstance(done.exception, FedsimError):
        raise done.exception
    return done


def test_laws_agreement_and_a_scenario_that_can_be_read(log, tmp_path):
    out = tmp_path / "phones.toml"
    done = fedsim(log, "--out", out, "--simulate", 50)
    assert done.exit_code == 0
    for words in (
        "compute",
        "log-normal",
        "median_s",
        "+-",
        "AIC",
        "rounds, held out: KS distance",
        "measured",
        "90 %",
    ):
        assert words in done.stdout, words
    assert "downlink_s missing: what end_s - start_s has beside the other phases is taken for it" in done.stderr
    assert done.stdout.rstrip().endswith(str(out))
    scenario = Scenario.load(out)
    assert (scenario.name, scenario.crowd.clients, scenario.rounds.count) == ("phones", 6, 40)
    # Two seconds for 100 samples, up to ten times the error 0.1 / sqrt(240).
    assert scenario.devices.compute.samples_per_s == pytest.approx(50, rel=0.065)


def test_an_existing_file_is_written_over_on_request_alone(log, tmp_path):
    out = tmp_path / "mine.toml"
    out.write_text("mine")
    with pytest.raises(FedsimError, match=r"exists; --force writes over it, --out names another file"):
        fedsim(log, "--out", out)
    assert out.read_text() == "mine"
    fedsim(log, "--out", out, "--force", "--by", "client", "--simulate", 20)
    assert Scenario.load(out).name == "mine"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--by", "phone"), "--by: 'phone' is not allowed; allowed: crowd, class, client"),
        (("--by", "class"), "has no column class"),
        (("--clients", "3"), "clients: 3 is not allowed; the log has 6 clients"),
        (("--held-out", "1"), "--held-out: 1.0 is not allowed; it must be at least 0 and below 1"),
        (("--base", "none.toml"), "none.toml"),
        (("--rounds-table", "none.csv"), "the file does not exist"),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(log, tmp_path, arguments, said):
    with pytest.raises(FedsimError, match=said):
        fedsim(log, "--out", tmp_path / "x.toml", *arguments)
    assert not (tmp_path / "x.toml").exists()

"""The audit of dedicated transfers that were cut short: true bits pass, bits in proportion to time do not."""

import pytest

from fedsim import Scenario, simulate
from fedsim.errors import AuditError
from fedsim.network.contracts import Links
from fedsim.rounds import Deadline
from fedsim.rounds.effects.audit import carried
from fedsim.rounds.run import Run
from tests.support.worlds import FixedLinks, serve


def in_a_cell(**changes):
    tables = {
        "crowd": {"clients": 20, "placement": {"kind": "disc", "radius_m": 900.0}},
        "learning": {"kind": "none", "model_bits": 2e5, "samples_per_client": 10},
        "network": {
            "kind": "cell",
            "path_loss": {"kind": "log-distance", "exponent": 3.7},
            "fading": {"kind": "rayleigh", "coherence_s": 0.05},
            "downlink": {"bandwidth_hz": 1e6},
            "uplink": {"bandwidth_hz": 1e5},
        },
        "devices": {"dropout": {"kind": "hazard", "rate_per_s": 0.1}},
        "rounds": {"count": 5, "policy": {"kind": "deadline", "deadline_s": 1.0}},
        "selector": {"kind": "uniform", "cohort": 12},
        "results": {"audit": True},
    }
    return simulate(Scenario(name="cut", **{**tables, **changes}))


def linear(self, plan, phase, members, start_s, elapsed_s):
    """Return the bits as they would be at a constant rate."""
    bits = plan.bits[phase // 2]
    return Links.carried_bits(self.links, plan.client[members], plan.draw, start_s, elapsed_s, bits, up=phase == 2)


def test_cut_transfers_of_a_cell_pass_and_bits_in_proportion_to_time_are_refused(monkeypatch):
    table = in_a_cell().participations.to_pandas()
    cut = table[table["cut_in"].isin(["downlink", "uplink"])]
    assert len(cut) > 5
    assert (cut["uplink_bits"] < 2e5).any()
    monkeypatch.setattr(Run, "carried", linear)
    with pytest.raises(
        AuditError, match=r"it has not carried what its link carried: \d+\.\d* bits of its (up|down)link in"
    ):
        in_a_cell()
    monkeypatch.setattr(carried, "refuse", lambda *_: None)
    in_a_cell()


@pytest.mark.parametrize("wrong", [0.5, 1.5])
def test_too_few_and_too_many_bits_are_refused_on_links_of_constant_rate(wrong, monkeypatch):
    def false(self, *arguments, original=Run.carried):
        return original(self, *arguments) * wrong

    def run():
        return serve(Deadline(deadline_s=3), [2] * 2, [0] * 2, [4] * 2, links=FixedLinks([2] * 2, [4] * 2))[0]

    rows = run().participations.to_pandas()
    assert rows["uplink_bits"].tolist() == [0.25, 0.25]
    monkeypatch.setattr(Run, "carried", false)
    with pytest.raises(AuditError, match="it has not carried what its link carried"):
        run()

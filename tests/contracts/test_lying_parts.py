"""Lying plug-ins: what a part of the user's own returns is refused where it enters, by name and by what is allowed.

Each line of the table is one lie of one contract in a run of a few rounds, and what its refusal must say: one for each
contract, and those that do not follow from the contracts alone, as in `test_lies.py`. The lies of selectors are in
`test_lying_selectors.py`.
"""
# ruff: noqa: ARG005, E501 (lies take what their contract gives, and a line is a lie)

import numpy as np
import pytest
from simpy import Interrupt

from fedsim.devices.compute import ZeroTimes
from fedsim.devices.heterogeneity import Fixed
from fedsim.learning import QSGD, FedAvgM
from fedsim.learning.data.images.digits import Digits
from fedsim.learning.data.partitions.sizes import EqualPartition
from fedsim.learning.timing_only import NoLearning
from fedsim.network.distributions import Constant as ConstantLatency
from fedsim.network.graph.access import ConstantAccess
from fedsim.network.medium.failures import Outage
from fedsim.network.placement import Disc
from fedsim.network.radio.fading import Rayleigh
from fedsim.network.radio.path_loss import LogDistance
from fedsim.network.radio.shadowing import IndependentShadowing
from fedsim.network.radio.spectral_efficiency import Shannon
from fedsim.network.topology.generators import Star
from fedsim.network.topology.mobility import Leg, RandomWaypoint
from fedsim.privacy import GeometricBudget, L1ClippedLaplace
from fedsim.rounds import WaitForAll
from fedsim.rounds.aggregation.rules import Aggregated, FedAvgRule
from fedsim.rounds.aggregation.staleness import Constant as ConstantStaleness
from fedsim.rounds.aggregation.weightings import Uniform
from fedsim.rounds.hierarchy.cloud_rules import Synchronous
from fedsim.rounds.hierarchy.grouping import ByOrder
from fedsim.rounds.policies.server_port import ServerTraits
from fedsim.run_setup import RunSetup
from fedsim.streams import Streams
from tests.support import lies
from tests.support.lies import CLIENTS, HUGE, building, first, like, lying, refused, returning


def numbers(contract, world, honest, member):
    """Return the lie of a member that returns NaN in an array of the shape of its first argument."""
    return f"{contract}.{member} NaN", world, lying(honest, member, like(0, first(np.nan))), "returned nan"


def shared(part):
    class Own(lies.SharedLinks):
        medium = part

    Own.__module__ = __name__
    return {**lies.network_of(Own), "learning": {"kind": "none", "samples_per_client": 5, "model_bits": 8.0}}


def devices(slot, part, **more):
    return {"devices": {slot: part}, **more}


def yields_a_number(self, server, round_):
    yield 3


def ends_with_nothing(self, server, round_):
    yield round_.everyone


def interrupts_itself(self, server, round_):
    yield server.env.timeout(1.0)
    raise Interrupt("a crash")


def waits_for_ever(self, server, round_):
    yield server.env.event()


def weighs(value):
    def aggregate(self, model, arrivals):
        found = FedAvgRule.aggregate(self, model, arrivals)
        return Aggregated(found.model, value(found.weight), found.held)

    return aggregate


def learner(member, answer):
    built = type(NoLearning(samples_per_client=5).build(RunSetup(CLIENTS, Streams(0))))
    attribute = member in ("samples", "model_bits", "update_bits", "remembers")
    own = type("Lie", (built,), {member: property(answer) if attribute else answer, "__module__": __name__})

    class Settings(NoLearning):
        def build(self, run):
            made = super().build(run)
            lie = own.__new__(own)
            for name in vars(made).keys() - {member}:
                object.__setattr__(lie, name, vars(made)[name])
            return lie

    Settings.__module__ = __name__
    return {"learning": Settings(samples_per_client=5)}


GRAPH = {
    "kind": "graph",
    "topology": {"kind": "star", "backhaul": {"capacity_bps": 1e6, "delay_s": 0.001}},
    "access": {"downlink_bps": 1e6, "uplink_bps": 1e6, "delay_s": 0.001},
}


def graph(**parts):
    tables = {"learning": {"kind": "none", "model_bits": 1e4, "samples_per_client": 5}}
    return {**tables, "network": {**GRAPH, **parts}}


def covered(member, answer):
    """Return a graph whose stations a user's own coverage describes, with views that lie."""

    class Access(ConstantAccess):
        def build(self, run):
            return lies.CoverageOf(super().build(run), lying(lies.ViewOf, member, answer))

    Access.__module__ = __name__
    return graph(access=Access(downlink_bps=1e6, uplink_bps=1e6, delay_s=0.001))


def moving(legs):
    class Own(RandomWaypoint):
        def build(self, run):
            return lambda client, place_m: iter(legs)

    Own.__module__ = __name__
    return graph(mobility=Own(radius_m=9.0, slowest_m_per_s=1.0, fastest_m_per_s=2.0))


def leaving(part):
    made = building(lambda _: part(), may_leave=True)
    return devices("availability", made, rounds={"policy": {"kind": "deadline", "deadline_s": 9.0}})


def private(**parts):
    usual = {"budget": {"kind": "geometric", "epsilon": 10.0}, "mechanism": {"kind": "laplace-l1", "clip": 1.0}}
    return {**lies.learning(), "privacy": usual | parts}


HERE = (0.0, 0.0)
INTERRUPTED = lies.raising(lies.RAISED["Interrupt"])
WORLDS = {
    "": lambda tables: tables,
    "shared": shared,
    "moving": moving,
    "learner": lambda lie: learner(*lie),
    "rule": lambda answer: lies.late_rule(lying(FedAvgRule, "aggregate", answer)),
    "spends": lambda part: private(budget=part(epsilon=10.0)),
    "placed": lambda part: {**lies.cell(), "crowd": {"clients": CLIENTS, "placement": part(radius_m=100.0)}},
    "law": lambda part: {
        "network": {"kind": "latency", "downlink": part(value_s=1.0), "uplink": {"kind": "constant", "value_s": 1.0}}
    },
    "links": lies.network_of,
    "transfer": lambda part: shared(type("Medium", (lies.HonestMedium,), {"transfer": part, "__module__": __name__})),
    "compute": lambda part: devices("compute", building(lambda _: part(), requires=frozenset())),
    "opening": lambda answer: leaving(lying(lies.NeverThere, "next_s", answer)),
    "dropout": lambda part: {
        **devices("dropout", part()),
        "rounds": {"policy": {"kind": "deadline", "deadline_s": 9.0}},
    },
    "spread": lambda part: {
        "learning": {"kind": "none", "samples_per_client": 5, "flops_per_sample": 1e6},
        "devices": {"compute": {"kind": "flops", "flops_per_s": 1e6, "jitter": part()}},
    },
    "policy": lambda part: {"rounds": {"policy": part()}},
    "own_wait": lambda wait_of: {"rounds": {"policy": lying(lies.OwnWait, "wait", wait_of)()}},
    "stale": lambda part: {
        "network": {"kind": "pause-two-speed"},
        "rounds": {
            "count": 6,
            "policy": {"kind": "deadline", "deadline_s": 0.3},
            "late": {"kind": "stale", "weight": part()},
        },
    },
    "grouped": lambda part: lies.edges(grouping=part(count=2)),
    "merging": lambda part: lies.edges(merging=part()),
    "carried": lambda part: lies.edges(backhaul=part()),
    "releases": lambda part: private(mechanism=part(clip=1.0)),
    "shares_spectrum": lambda part: lies.cell(uplink={"sharing": part()}),
    "steps": lambda part: lies.learning(server=part()),
    "combines": lambda answer: lies.learning(aggregation=lying(lies.HonestAggregation, "combine", answer)()),
    "weighing": lambda answer: {"rounds": {"weights": lying(Uniform, "of_clients", answer)()}},
    "compresses": lambda part: lies.learning(compression=part()),
    "trains": lambda part: lies.learning(algorithm=part()),
    "split": lambda part: lies.learning(split=part()),
    **{
        slot: (lambda part, slot=slot: lies.cell(**{slot: part()}))
        for slot in ("path_loss", "fading", "rate", "shadowing")
    },
}
LIES = [
    numbers("latency law", "law", ConstantLatency, "quantile"),
    numbers("links", "links", lies.HonestLinks, "downlink_s"),
    ("shared medium None", "shared", lying(lies.HonestMedium, "uplink", returning(None)), "returned None"),
    ("shared medium raises Interrupt", "shared", lying(lies.HonestMedium, "uplink", INTERRUPTED), "failed with Interrupt"),
    ("transfer -1 bits", "transfer", lying(lies.HonestTransfer, "sent_bits", returning(-1.0)), r"sent_bits returned -1\.0"),
    numbers("compute times", "compute", ZeroTimes, "duration_s"),
    ("compute time None", "", devices("compute", building(returning(None), requires=frozenset())), "build returned None"),
    numbers("dropout law", "dropout", lies.HonestWithDropout, "time_to_dropout_s"),
    ("availability opening of NaN", "opening", returning((np.nan, 1)), "next_s returned nan"),
    ("availability opening of -1", "opening", returning((-1.0, 1)), r"next_s returned -1\.0"),
    ("availability draw of 1.5", "opening", returning((0.0, 1.5)), r"next_s returned 1\.5"),
    ("availability draw of 0", "opening", returning((0.0, 0)), r"next_s returned 0\n  allowed: a whole number of at least 1"),
    ("availability opening alone", "opening", returning(0.0), r"next_s returned 0\.0"),
    ("energy law a text", "", devices("energy", building(returning("full"), may_run_empty=False, requires=frozenset())), "returned 'full'"),
    numbers("spread law", "spread", Fixed, "factor"),
    ("policy no traits", "policy", lying(WaitForAll, "traits", returning(None)), "traits returned None"),
    ("policy half a client", "policy", lying(WaitForAll, "traits", returning(ServerTraits(cohort_size=1.5))), r"cohort_size = 1\.5"),
    ("policy patience of NaN", "policy", lying(WaitForAll, "traits", returning(ServerTraits(give_up_after_s=np.nan))), "give_up_after_s = nan"),
    ("policy yields a number", "own_wait", yields_a_number, "yielded 3"),
    ("policy ends with nothing", "own_wait", ends_with_nothing, "wait returned None"),
    ("policy interrupts itself", "own_wait", interrupts_itself, "wait failed with Interrupt"),
    ("policy waits for ever", "own_wait", waits_for_ever, r"waits for ever: no client is in flight, and 2 of the round's 2 have delivered\n  allowed: an event that triggers once"),
    ("policy returns no generator", "own_wait", returning(3), "wait returned 3"),
    ("late rule no rule", "", lies.late_rule(lambda learner: None), "aggregation returned None"),
    ("rule no model", "rule", returning(None), r"aggregate returned None\n  allowed: an Aggregated\n"),
    ("rule weights of inf", "rule", weighs(lambda weight: weight + np.inf), "aggregate returned inf"),
    ("rule weights too long", "rule", weighs(lambda weight: np.ones(weight.size + 1)), "aggregate returned"),
    numbers("staleness law", "stale", ConstantStaleness, "factor"),
    ("grouping floats", "grouped", lying(ByOrder, "edges_of", like(1, lambda array: array)), "float64"),
    ("grouping gap", "grouped", lying(ByOrder, "edges_of", like(1, lambda array: 5 * np.arange(array.size))), "without clients"),
    ("merging of edges NaN", "merging", lying(Synchronous, "shares", returning((np.nan, np.zeros(2)))), "shares returned nan"),
    ("merging of edges sum 2", "merging", lying(Synchronous, "shares", returning((1.0, np.array([1.0, 0.0])))), "sum 2"),
    ("merging of edges one share", "merging", lying(Synchronous, "shares", returning(1.0)), r"shares returned 1\.0"),
    ("merging of edges three shares", "merging", lying(Synchronous, "shares", returning((1.0, np.zeros(2), 0.0))), r"shares returned \(1\.0, .*\n  allowed: a pair of the cloud's share"),
    ("backhaul a number", "carried", lying(lies.HonestBackhaul, "open", returning(3)), "open returned 3"),
    ("backhaul no transfer", "carried", lying(lies.HonestBackhaul, "open", returning(lambda edge, up: None)), "started as None"),
    ("budget leaks -1", "spends", lying(GeometricBudget, "leaked", returning(-1.0)), r"leaked returned -1\.0"),
    numbers("mechanism", "releases", L1ClippedLaplace, "release"),
    ("placement of NaN", "placed", lying(Disc, "positions", returning(np.full((CLIENTS, 2), np.nan))), "positions returned nan"),
    numbers("path loss", "path_loss", LogDistance, "loss_db"),
    numbers("fading", "fading", Rayleigh, "gain_quantile"),
    numbers("rate", "rate", Shannon, "efficiency"),
    ("shadowing of NaN", "shadowing", lying(IndependentShadowing, "standard", returning(np.full((CLIENTS, 1), np.nan))), "returned nan"),
    ("sharing rule NaN", "shares_spectrum", lying(lies.HonestSharing, "next_end", returning((np.nan, None))), "next_end returned nan"),
    ("sharing rule one number", "shares_spectrum", lying(lies.HonestSharing, "next_end", returning(1.0)), r"next_end returned 1\.0"),
    ("topology None", "", graph(topology=lying(Star, "graph", returning(None))(backhaul=GRAPH["topology"]["backhaul"])), "graph returned None"),
    ("coverage rates of NaN", "", covered("rates_bps", lambda self, station: np.full((station.size, 2), np.nan)), "rates_bps returned nan"),
    ("mobility a number", "moving", [3], "a leg is 3"),
    ("mobility at NaN", "moving", [Leg(0.0, np.inf, (np.nan, 0.0), HERE)], "a leg is Leg"),
    ("mobility that begins late", "moving", [Leg(1.0, np.inf, HERE, HERE)], "a leg is Leg"),
    ("mobility back in time", "moving", [Leg(0.0, -1.0, HERE, HERE)], "a leg is Leg"),
    ("trouble raises Interrupt", "", graph(trouble=[lying(Outage, "start", INTERRUPTED)(node="bs-0", from_s=1.0, duration_s=1.0)]), "failed with Interrupt"),
    ("split of floats", "split", lying(EqualPartition, "assign", returning([np.zeros(2)] * CLIENTS)), "float64"),
    ("split of one client", "split", lying(EqualPartition, "assign", returning([np.arange(2)])), "a list of 4 arrays"),
    ("split of samples twice", "split", lying(EqualPartition, "assign", returning([np.arange(2)] * CLIENTS)), "sample 0 twice"),
    ("split of unknown samples", "split", lying(EqualPartition, "assign", returning([np.array([HUGE])] * CLIENTS)), f"{HUGE} for client 0"),
    ("data set None", "", lies.learning(data=lying(Digits, "load", returning(None))()), "load returned None"),
    ("server optimizer half a model", "steps", lying(FedAvgM, "step", lambda self, m, u, s: (m[:1], s)), "of shape"),
    ("server optimizer no state", "steps", lying(FedAvgM, "step", lambda self, m, u, s: m), "step returned"),
    ("server optimizer a list as state", "steps", lying(FedAvgM, "init", returning([1])), r"init returned \[1\]"),
    ("server optimizer model of objects", "steps", lying(FedAvgM, "step", lambda self, m, u, s: (m.astype(object), s)), "object"),
    ("server optimizer writes on the model", "steps", lying(FedAvgM, "step", lambda self, m, u, s: (m.sort(), s)), "failed with ValueError"),
    ("aggregation half an update", "combines", lambda self, u, w, p: u[0][:1], "of shape"),
    ("aggregation of objects", "combines", lambda self, u, w, p: u[0].astype(object), "object"),
    ("aggregation writes on the updates", "combines", lambda self, u, w, p: u.sort(), "failed with ValueError"),
    ("weights of NaN", "weighing", lambda self, samples, streams: np.full(CLIENTS, np.nan), "of_clients returned nan"),
    ("algorithm writes on the model", "trains", lying(lies.HonestAlgorithm, "begin", lambda self, task: task.model.sort()), "failed with ValueError"),
    ("algorithm ends with a list", "trains", lying(lies.HonestAlgorithm, "end", returning([1.0])), "end returned"),
    ("algorithm ends with texts", "trains", lying(lies.HonestAlgorithm, "end", returning({"last": "x"})), "'last' = 'x'"),
    ("algorithm fails at its end", "trains", lying(lies.HonestAlgorithm, "end", lambda self, task, difference: 1 / 0), "end failed with ZeroDivisionError"),
    ("compressor half an update", "compresses", lying(QSGD, "compress", lambda self, u, t, r: u[:1]), "of shape"),
    ("compressor writes on the update", "compresses", lying(QSGD, "compress", lambda self, u, t, r: u.sort()), "failed with ValueError"),
    ("learner update of NaN bits", "learner", ("update_bits", returning(np.nan)), "update_bits returned nan"),
    ("learner remembers a text", "learner", ("remembers", returning("yes")), "remembers returned 'yes'"),
    ("learner samples of -1", "learner", ("samples", returning(np.full(CLIENTS, -1))), "samples returned -1"),
    ("learner samples of one client", "learner", ("samples", returning(np.array([1]))), "of shape"),
    ("learner bits of NaN", "learner", ("model_bits", returning(np.nan)), "model_bits returned nan"),
    ("learner work of inf", "learner", ("work_samples", like(0, first(np.inf))), "work_samples returned inf"),
]  # fmt: skip


@pytest.mark.parametrize(("world", "part", "said"), [lie[1:] for lie in LIES], ids=[lie[0] for lie in LIES])
def test_a_lie_is_refused_by_name(world, part, said):
    refused(lambda: WORLDS[world](part), said)

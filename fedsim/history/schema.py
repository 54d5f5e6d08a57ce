"""The tables of a run, described once: each column with its type, unit, labels, null rule and meaning.

A new column is one `Column` here and one value where it is known.
"""

from typing import Final

import pyarrow as pa

from fedsim.history.column import LABEL, Column, TableSchema
from fedsim.history.outcomes import Fate, JudgedModel, JudgedSamples, Outcome, Phase, RoundEnd, SecureStep

_NO_EDGES: Final = "without edge servers"
_NO_SAMPLES: Final = "the client has no such samples"
_NO_SUCH_METRIC: Final = "the task has no such metric, or the scores are no numbers"
_ACCURACY_ALONE: Final = "the task has none but accuracy"
_CLIENT: Final = Column("client", pa.int32(), "index of the client")
_BITS: Final = (
    Column("downlink_bits", pa.float64(), "received; in part where the downlink was cut", "bit"),
    Column("uplink_bits", pa.float64(), "sent; in part where the uplink was cut", "bit"),
)
_START: Final = Column("start_s", pa.float64(), "simulated time of the beginning", "s")
_END: Final = Column("end_s", pa.float64(), "simulated time of the end", "s")
_EDGE: Final = Column("edge", pa.int32(), "index of the edge server", null=_NO_EDGES)
_DOWNLINK: Final = Column("downlink_s", pa.float64(), "time on the downlink, without queueing", "s")
_COMPUTE: Final = Column("compute_s", pa.float64(), "time of computing", "s")
_UPLINK: Final = Column("uplink_s", pa.float64(), "time on the uplink, without queueing", "s")
_QUEUE: Final = Column("queue_s", pa.float64(), "waiting time for a medium to be free", "s")
_VERSION: Final = Column("start_version", pa.int32(), "version of the model that it started from")
_STALENESS: Final = Column("staleness", pa.int32(), "newer versions of the model when it was used", null="not used")
_SPENT: Final = (_START, _DOWNLINK, _COMPUTE, _UPLINK, _QUEUE, _END, *_BITS)
_ENDED: Final = (
    Column("outcome", LABEL, "how it ended", labels=Outcome),
    Column("cut_in", LABEL, "phase in which it was cut", labels=Phase, null="not cut: the message arrived"),
)
_ENERGY: Final = Column("energy_j", pa.float64(), "drawn from the battery; 0 without batteries", "J", default=0.0)

PARTICIPATIONS: Final = TableSchema(
    "participations",
    "one client in one round",
    (
        Column("round", pa.int32(), "round in which it started; with edge servers, that of its edge server"),
        _EDGE,
        _CLIENT,
        Column("draws", pa.int32(), "how often the selector drew the client"),
        Column("weight", pa.float64(), "share of the update in the model that it went into; 0 if not used"),
        Column("work", pa.float64(), "share of the local work that was done"),
        *_SPENT,
        *_ENDED,
        Column("fate", LABEL, "whether its time and bits served", labels=Fate),
        _VERSION,
        Column("served_round", pa.int32(), "round whose model the update went into", null="not used"),
        _STALENESS,
        Column(
            "epsilon",
            pa.float64(),
            "privacy charged for the upload by itself; 0 without privacy",
            "epsilon",
            default=0.0,
        ),
        _ENERGY,
    ),
)
_ROUND: Final = (
    Column("round", pa.int32(), "number of the round, from 1"),
    _START,
    _END,
    Column("duration_s", pa.float64(), "end_s - start_s", "s"),
    Column("candidates", pa.int32(), "clients that could be selected"),
    Column("selected", pa.int32(), "participations that started"),
    Column("delivered", pa.int32(), "participations that ended in time"),
    Column("late", pa.int32(), "participations that were late"),
    Column("dropped", pa.int32(), "participations whose client was lost"),
    Column("stale_used", pa.int32(), "stale updates that were used"),
    Column("model_version", pa.int32(), "version of the model at the end"),
    Column("largest_leakage", pa.float64(), "largest privacy spent by a client so far", "epsilon", default=0.0),
    Column(
        "mean_leakage",
        pa.float64(),
        "privacy spent so far, mean over the clients",
        "epsilon",
        null="without privacy",
    ),
    Column(
        "noise_to_signal",
        pa.float64(),
        "expected energy of the privacy noise in the updates used, over that of the clipped updates; where the server "
        "adds the noise, of that in its aggregates, over that of the weighted sums of the clipped updates",
        null="not asked for by `results.noise_to_signal`, no update used, not known, or a budget is spent",
    ),
    Column(
        "clipped_share",
        pa.float64(),
        "share of the updates used that their privacy mechanism had to clip",
        null="not asked for by `results.noise_to_signal`, no update used, or not known",
    ),
    Column("ended_by", LABEL, "what ended the round", labels=RoundEnd),
)
ROUNDS: Final = TableSchema("rounds", "one round; with edge servers, one of the cloud", _ROUND)
_EVALUATED: Final = Column("round", pa.int32(), "round after which it was made; 0 before the first one")
_JUDGED: Final = (
    Column("model", LABEL, "which model", labels=JudgedModel, null="it was not reported"),
    Column("judged_on", LABEL, "on which samples", labels=JudgedSamples, null="it was not reported"),
)
EVALUATIONS: Final = TableSchema(
    "evaluations",
    "one evaluation: of the global model on the test set; where clients use models of their own, of these on local "
    "test samples, as the mean over the clients",
    (
        _EVALUATED,
        Column("time_s", pa.float64(), "simulated time", "s"),
        Column("model_version", pa.int32(), "version of the model"),
        Column(
            "accuracy",
            pa.float64(),
            "share of the test samples classified correctly",
            null=_NO_SUCH_METRIC,
        ),
        Column("loss", pa.float64(), "mean loss over the test samples", null="it was not reported"),
        Column(
            "metrics",
            pa.map_(pa.string(), pa.float64()),
            "all metrics of the task by name",
            null=_ACCURACY_ALONE,
        ),
        *_JUDGED,
    ),
    sorted_by="time_s",
)
EDGE_ROUNDS: Final = TableSchema(
    "edge_rounds",
    "one round of an edge server",
    (Column("edge", pa.int32(), "index of the edge server"), *_ROUND),
    optional=True,
)
EDGE_PARTICIPATIONS: Final = TableSchema(
    "edge_participations",
    "one cycle of an edge server: model from the cloud, rounds, model to the cloud",
    (
        Column("round", pa.int32(), "round of the cloud that received the model", null="the run ended before"),
        Column("edge", pa.int32(), "index of the edge server"),
        Column("edge_rounds", pa.int32(), "rounds that the edge server ran"),
        _START,
        Column("downlink_s", pa.float64(), "time of the model from the cloud", "s"),
        Column("uplink_s", pa.float64(), "time of the model to the cloud", "s"),
        _END,
        *_BITS,
        _VERSION,
        Column("staleness", pa.int32(), "merges of the cloud since the model was fetched", null="no model arrived"),
        Column("weight", pa.float64(), "share of the edge server's model in the cloud's"),
    ),
    optional=True,
)
PROBES: Final = TableSchema(
    "probes",
    "one client asked a question before a selection",
    (
        Column("round", pa.int32(), "round of the selection"),
        _EDGE,
        _CLIENT,
        *_SPENT,
        *_ENDED,
        Column(
            "epsilon", pa.float64(), "privacy charged for the answer; 0 if it is not private", "epsilon", default=0.0
        ),
        _ENERGY,
    ),
    optional=True,
)
CLIENT_EVALUATIONS: Final = TableSchema(
    "client_evaluations",
    "one client in an evaluation of the model on its local test samples",
    (
        _EVALUATED,
        _CLIENT,
        Column("samples", pa.int32(), "local test samples of the client"),
        Column(
            "accuracy", pa.float64(), "share of them classified correctly", null=f"{_NO_SAMPLES}, or {_NO_SUCH_METRIC}"
        ),
        Column("loss", pa.float64(), "mean loss over them", null=f"{_NO_SAMPLES}, or it is no number"),
        Column(
            "metrics",
            pa.map_(pa.string(), pa.float64()),
            "all metrics of the task by name, over them",
            null=f"{_NO_SAMPLES}, or {_ACCURACY_ALONE}",
        ),
        *_JUDGED,
    ),
    optional=True,
)
SECURE_STEPS: Final = TableSchema(
    "secure_steps",
    "one client in one step of secure aggregation: a message down, work, and a message up",
    (
        Column("round", pa.int32(), "number of the round"),
        _EDGE,
        _CLIENT,
        Column("step", LABEL, "of the protocol", labels=SecureStep),
        *_SPENT,
        *_ENDED,
        _ENERGY,
    ),
    optional=True,
)
_OF_CLIENTS: Final = "the aggregate of a round"
_NOT_STATED: Final = "not stated by the mechanism"
RELEASES: Final = TableSchema(
    "releases",
    "one private release: an update whose upload has begun, or an aggregate to which the server has added noise",
    (
        Column("round", pa.int32(), "round in which the client started; of an aggregate, its round"),
        _EDGE,
        Column("client", pa.int32(), "index of the client", null=_OF_CLIENTS),
        Column("number", pa.int32(), "number of the release among those of the client, from 1", null=_OF_CLIENTS),
        Column("epsilon", pa.float64(), "of this release by itself, by which its noise is scaled", "epsilon"),
        Column("clipping_norm", pa.float64(), "most that an update keeps, in the mechanism's norm", null=_NOT_STATED),
        Column(
            "sensitivity",
            pa.float64(),
            "most by which two neighbouring releases differ, in that norm",
            null=f"{_NOT_STATED}, or the server adds the noise to the aggregate",
        ),
        Column(
            "noise_scale",
            pa.float64(),
            "standard deviation of normal noise, or mean size of Laplace noise, on a coordinate",
            null=f"{_NOT_STATED}, or the server adds the noise to the aggregate",
        ),
        Column("spent", pa.float64(), "spent by the client with this release", "epsilon", null=_OF_CLIENTS),
        Column(
            "delta",
            pa.float64(),
            "probability mass that what is spent by updates does not bound, at most 1, which bounds nothing",
            null=f"{_OF_CLIENTS}, or {_NOT_STATED}",
        ),
    ),
    optional=True,
)
ACCOUNTS: Final = TableSchema(
    "accounts",
    "one client of an audited run: its time by use, probes included, which adds up to the length of the run",
    (
        _CLIENT,
        Column("idle_s", pa.float64(), "time without a participation", "s"),
        _DOWNLINK,
        _COMPUTE,
        _QUEUE,
        _UPLINK,
        Column("cut_off_s", pa.float64(), "time in phases that were cut", "s"),
    ),
    optional=True,
)
_NO_RADIO: Final = "no radio"
_NO_PLACES: Final = "places have no effect"
_NOTHING_LEARNED: Final = "nothing is learned"
CLIENTS: Final = TableSchema(
    "clients",
    "one client, as it is before the first round",
    (
        _CLIENT,
        Column("x_m", pa.float64(), "place", "m", null=_NO_PLACES),
        Column("y_m", pa.float64(), "place", "m", null=_NO_PLACES),
        Column("site", pa.int32(), "index of the site or server at which its transfers end", null="no sites"),
        Column("distance_m", pa.float64(), "distance to its site or base station", "m", null=_NO_PLACES),
        Column("downlink_snr_db", pa.float64(), "mean over fading, interference included", "dB", null=_NO_RADIO),
        Column("uplink_snr_db", pa.float64(), "mean over fading, interference included", "dB", null=_NO_RADIO),
        Column("downlink_bps", pa.float64(), "mean rate of a client alone on the medium", "bit/s", null="no rates"),
        Column("uplink_bps", pa.float64(), "mean rate of a client alone on the medium", "bit/s", null="no rates"),
        Column("samples_per_s", pa.float64(), "samples of a pass over their mean time", "1/s", null="no time"),
        Column(
            "flops_per_s",
            pa.float64(),
            "operations of a pass over their mean time",
            "1/s",
            null="the law of times counts no operations",
        ),
        Column("samples", pa.int32(), "training samples", null="not known"),
        Column("classes", pa.int32(), "different labels in its training data", null=_NOTHING_LEARNED),
        Column(
            "labels",
            pa.list_(pa.int32()),
            "training samples of each label, from label 0 on",
            null=_NOTHING_LEARNED,
        ),
        Column("capacity_j", pa.float64(), "energy of its full battery", "J", null="no batteries"),
        Column("charge_j", pa.float64(), "energy in its battery at time 0", "J", null="no batteries"),
    ),
    optional=True,
)
TABLES: Final = {
    table.name: table
    for table in (
        *(PARTICIPATIONS, ROUNDS, EVALUATIONS, EDGE_ROUNDS, EDGE_PARTICIPATIONS, PROBES, CLIENT_EVALUATIONS),
        *(SECURE_STEPS, RELEASES, ACCOUNTS, CLIENTS),
    )
}
AT_THE_END: Final = (ACCOUNTS.name, CLIENTS.name)
"""Tables that are made as a whole, and written when the run has ended."""
FORMAT_VERSION: Final = 8
"""Number of the format of run folders: one more with each change of a column or of `run.json`."""

"""The tables of a run, described once: each column with its type, unit, labels, null rule and meaning.

A new column is one `Column` here and one value where it is known.
"""

from typing import Any, Final

import pyarrow as pa

from fedsim.history.column import LABEL, Column, TableSchema
from fedsim.history.outcomes import Fate, JudgedModel, JudgedSamples, Outcome, Phase, RoundEnd, SecureStep


def _real(name: str, meaning: str, unit: str = "", **more: Any) -> Column:
    return Column(name, pa.float64(), meaning, unit, **more)


def _whole(name: str, meaning: str, unit: str = "", **more: Any) -> Column:
    return Column(name, pa.int32(), meaning, unit, **more)


_NO_EDGES: Final = "without edge servers"
_NO_SAMPLES: Final = "the client has no such samples"
_NO_SUCH_METRIC: Final = "the task has no such metric, or the scores are no numbers"
_ACCURACY_ALONE: Final = "the task has none but accuracy"
_SCORES: Final = pa.map_(pa.string(), pa.float64())
_CLIENT: Final = _whole("client", "index of the client")
_BITS: Final = (
    _real("downlink_bits", "received; in part where the downlink was cut", "bit"),
    _real("uplink_bits", "sent; in part where the uplink was cut", "bit"),
)
_START: Final = _real("start_s", "simulated time of the beginning", "s")
_END: Final = _real("end_s", "simulated time of the end", "s")
_EDGE: Final = _whole("edge", "index of the edge server", null=_NO_EDGES)
_DOWNLINK: Final = _real("downlink_s", "time on the downlink, without queueing", "s")
_COMPUTE: Final = _real("compute_s", "time of computing", "s")
_UPLINK: Final = _real("uplink_s", "time on the uplink, without queueing", "s")
_QUEUE: Final = _real("queue_s", "waiting time for a medium to be free", "s")
_VERSION: Final = _whole("start_version", "version of the model that it started from")
_STALENESS: Final = _whole("staleness", "newer versions of the model when it was used", null="not used")
_SPENT: Final = (_START, _DOWNLINK, _COMPUTE, _UPLINK, _QUEUE, _END, *_BITS)
_ENDED: Final = (
    Column("outcome", LABEL, "how it ended", labels=Outcome),
    Column("cut_in", LABEL, "phase in which it was cut", labels=Phase, null="not cut: the message arrived"),
)
_ENERGY: Final = _real("energy_j", "drawn from the battery; 0 without batteries", "J", default=0.0)

PARTICIPATIONS: Final = TableSchema(
    "participations",
    "one client in one round",
    (
        _whole("round", "round in which it started; with edge servers, that of its edge server"),
        _EDGE,
        _CLIENT,
        _whole("draws", "how often the selector drew the client"),
        _real("weight", "share of the update in the model that it went into; 0 if not used"),
        _real("work", "share of the local work that was done"),
        *_SPENT,
        *_ENDED,
        Column("fate", LABEL, "whether its time and bits served", labels=Fate),
        _VERSION,
        _whole("served_round", "round whose model the update went into", null="not used"),
        _STALENESS,
        _real("epsilon", "privacy charged for the upload by itself; 0 without privacy", "epsilon", default=0.0),
        _ENERGY,
    ),
)
_ROUND: Final = (
    _whole("round", "number of the round, from 1"),
    _START,
    _END,
    _real("duration_s", "end_s - start_s", "s"),
    _whole("candidates", "clients that could be selected"),
    _whole("selected", "participations that started"),
    _whole("delivered", "participations that ended in time"),
    _whole("late", "participations that were late"),
    _whole("dropped", "participations whose client was lost"),
    _whole("stale_used", "stale updates that were used"),
    _whole("model_version", "version of the model at the end"),
    _real("largest_leakage", "largest privacy spent by a client so far", "epsilon", default=0.0),
    _real("mean_leakage", "privacy spent so far, mean over the clients", "epsilon", null="without privacy"),
    _real(
        "noise_to_signal",
        "expected energy of the privacy noise in the updates used, over that of the clipped updates; where the server "
        "adds the noise, of that in its aggregates, over that of the weighted sums of the clipped updates",
        null="not asked for by `results.noise_to_signal`, no update used, not known, or a budget is spent",
    ),
    _real(
        "clipped_share",
        "share of the updates used that their privacy mechanism had to clip",
        null="not asked for by `results.noise_to_signal`, no update used, or not known",
    ),
    Column("ended_by", LABEL, "what ended the round", labels=RoundEnd),
)
ROUNDS: Final = TableSchema("rounds", "one round; with edge servers, one of the cloud", _ROUND)
_EVALUATED: Final = _whole("round", "round after which it was made; 0 before the first one")
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
        _real("time_s", "simulated time", "s"),
        _whole("model_version", "version of the model"),
        _real("accuracy", "share of the test samples classified correctly", null=_NO_SUCH_METRIC),
        _real("loss", "mean loss over the test samples", null="it was not reported"),
        Column("metrics", _SCORES, "all metrics of the task by name", null=_ACCURACY_ALONE),
        *_JUDGED,
    ),
    sorted_by="time_s",
)
EDGE_ROUNDS: Final = TableSchema(
    "edge_rounds",
    "one round of an edge server",
    (_whole("edge", "index of the edge server"), *_ROUND),
    optional=True,
)
EDGE_PARTICIPATIONS: Final = TableSchema(
    "edge_participations",
    "one cycle of an edge server: model from the cloud, rounds, model to the cloud",
    (
        _whole("round", "round of the cloud that received the model", null="the run ended before"),
        _whole("edge", "index of the edge server"),
        _whole("edge_rounds", "rounds that the edge server ran"),
        _START,
        _real("downlink_s", "time of the model from the cloud", "s"),
        _real("uplink_s", "time of the model to the cloud", "s"),
        _END,
        *_BITS,
        _VERSION,
        _whole("staleness", "merges of the cloud since the model was fetched", null="no model arrived"),
        _real("weight", "share of the edge server's model in the cloud's"),
    ),
    optional=True,
)
PROBES: Final = TableSchema(
    "probes",
    "one client asked a question before a selection",
    (
        _whole("round", "round of the selection"),
        _EDGE,
        _CLIENT,
        *_SPENT,
        *_ENDED,
        _real("epsilon", "privacy charged for the answer; 0 if it is not private", "epsilon", default=0.0),
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
        _whole("samples", "local test samples of the client"),
        _real("accuracy", "share of them classified correctly", null=f"{_NO_SAMPLES}, or {_NO_SUCH_METRIC}"),
        _real("loss", "mean loss over them", null=f"{_NO_SAMPLES}, or it is no number"),
        Column(
            "metrics",
            _SCORES,
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
        _whole("round", "number of the round"),
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
        _whole("round", "round in which the client started; of an aggregate, its round"),
        _EDGE,
        _whole("client", "index of the client", null=_OF_CLIENTS),
        _whole("number", "number of the release among those of the client, from 1", null=_OF_CLIENTS),
        _real("epsilon", "of this release by itself, by which its noise is scaled", "epsilon"),
        _real("clipping_norm", "most that an update keeps, in the mechanism's norm", null=_NOT_STATED),
        _real(
            "sensitivity",
            "most by which two neighbouring releases differ, in that norm",
            null=f"{_NOT_STATED}, or the server adds the noise to the aggregate",
        ),
        _real(
            "noise_scale",
            "standard deviation of normal noise, or mean size of Laplace noise, on a coordinate",
            null=f"{_NOT_STATED}, or the server adds the noise to the aggregate",
        ),
        _real("spent", "spent by the client with this release", "epsilon", null=_OF_CLIENTS),
        _real(
            "delta",
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
        _real("idle_s", "time without a participation", "s"),
        _DOWNLINK,
        _COMPUTE,
        _QUEUE,
        _UPLINK,
        _real("cut_off_s", "time in phases that were cut", "s"),
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
        _real("x_m", "place", "m", null=_NO_PLACES),
        _real("y_m", "place", "m", null=_NO_PLACES),
        _whole("site", "index of the site or server at which its transfers end", null="no sites"),
        _real("distance_m", "distance to its site or base station", "m", null=_NO_PLACES),
        _real("downlink_snr_db", "mean over fading, interference included", "dB", null=_NO_RADIO),
        _real("uplink_snr_db", "mean over fading, interference included", "dB", null=_NO_RADIO),
        _real("downlink_bps", "mean rate of a client alone on the medium", "bit/s", null="no rates"),
        _real("uplink_bps", "mean rate of a client alone on the medium", "bit/s", null="no rates"),
        _real("samples_per_s", "samples of a pass over their mean time", "1/s", null="no time"),
        _real(
            "flops_per_s",
            "operations of a pass over their mean time",
            "1/s",
            null="the law of times counts no operations",
        ),
        _whole("samples", "training samples", null="not known"),
        _whole("classes", "different labels in its training data", null=_NOTHING_LEARNED),
        Column(
            "labels", pa.list_(pa.int32()), "training samples of each label, from label 0 on", null=_NOTHING_LEARNED
        ),
        _real("capacity_j", "energy of its full battery", "J", null="no batteries"),
        _real("charge_j", "energy in its battery at time 0", "J", null="no batteries"),
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

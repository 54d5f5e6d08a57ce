"""Which digests must move with each field of a scenario, and why.

Digests come one after the other: the first model, a training that starts from it, what is sent of it, the next model of
a server, the cloud's model above several servers, and the evaluation of a model. What moves one moves all that follow
from it. The digest of the scenario itself moves with every field.
"""

from typing import Final, NamedTuple

from fedsim.learning import TASKS


class Moves(NamedTuple):
    digests: frozenset[str]
    reason: str


def _moves(digests: str, reason: str) -> Moves:
    return Moves(frozenset(digests.split()), reason)


DIGESTS: Final = frozenset({"start", "training", "sent", "model", "cloud", "evaluation"})
"""Of the first model, trainings, what is sent, the next model of a server, the cloud's model, and the evaluation."""

START: Final = _moves(
    "start training sent model cloud evaluation", "the model, the data that it is for, or the draw of its first weights"
)
TRAIN: Final = _moves("training sent model cloud evaluation", "the samples of a client, or what is done with them")
SEND: Final = _moves("sent model cloud evaluation", "the training is the same, what leaves the client differs")
STEP: Final = _moves("model cloud evaluation", "updates are the same, their weights or the step differ")
JUDGE: Final = _moves("evaluation", "models are the same, what is said of them differs")
MERGE: Final = _moves("cloud", "models of edge servers are the same, their shares, members or the cloud's step differ")
TIMES: Final = _moves("", "times alone: they decide which trainings are needed, not what comes of one")
WHO: Final = _moves("", "who takes part, and when a round is over: which trainings are needed, not what comes of one")
ANSWERS: Final = _moves(
    "sent model cloud evaluation", "what clients answer about their sizes, and what that leaves of the budget"
)
DRAWS: Final = _moves("", "who takes part, and which samples its clients draw in a round: nothing of a whole training")
SHOWN: Final = _moves("", "names, measures and figures")
STANDS_FOR: Final = _moves("", "stands for a bigger model in the times of transfers and work")
ENOUGH: Final = _moves("", "counts by the samples that it gives to clients, and here all have enough")

NO_EFFECT: Final = _moves("", "adds the same number to the score of every class, so that no label depends on it")
UNUSED: Final = _moves("", "counts for a law that is not the one of the scenario")
UNASKED: Final = _moves("", "numbers beside updates, or shares of labels, for which the selector does not ask")

SPENDS: Final = _moves(
    "sent model cloud evaluation", "who takes part; and numbers beside updates take a share of the budget of privacy"
)

COMPOSED: Final = _moves("sent model cloud evaluation", "goes with the mechanism 'gaussian', which is another one here")

CHECKED: Final = _moves("", "says what the content must be, and nothing else is accepted")

Row = tuple[str, Moves, str]

BELOW: Final[dict[str, Moves]] = {
    table: moves
    for moves, tables in (
        (START, "learning.data learning.test learning.model"),
        (TRAIN, "learning.split learning.task learning.algorithm learning.local learning.compression"),
        (SEND, "privacy.budget privacy.mechanism"),
        (UNASKED, "privacy.side_information privacy.label_histograms"),
        (STEP, "learning.server learning.aggregation rounds.weights rounds.policy.staleness rounds.late.weight"),
        (MERGE, "rounds.edges.grouping rounds.edges.merging rounds.edges.server"),
        (TIMES, "crowd.placement rounds.secure_aggregation rounds.edges.backhaul rounds.effects network devices"),
        (WHO, "privacy.composition rounds.target rounds.policy rounds.faults selector"),
        (SHOWN, "results"),
    )
    for table in tables.split()
}
"""What the fields of a table and of all parts below it move, unless a row says otherwise; the longest path counts."""

ROWS: Final[list[Row]] = [
    ("", SHOWN, "name"),
    ("", START, "seed learning"),
    ("", SEND, "privacy"),
    ("", TIMES, "network"),
    ("", SPENDS, "selector"),
    ("crowd", TRAIN, "clients"),
    ("crowd", TIMES, "placement"),
    ("learning supervised", START, "data model test"),
    ("learning supervised", TRAIN, "split task algorithm compression"),
    ("learning supervised", STEP, "server aggregation"),
    ("learning supervised", ENOUGH, "allow_empty"),
    ("learning supervised", STANDS_FOR, "model_bits flops_per_sample"),
    ("learning.compression qsgd", TIMES, "coding bits_per_number"),
    *((f"learning.compression {kind}", TIMES, "coding") for kind in ("top-k", "random-k")),
    ("learning none", STANDS_FOR, "model_bits downlink_bits uplink_bits samples_per_client flops_per_sample"),
    ("learning.data synthetic", NO_EFFECT, "a"),
    ("learning.data idx-files", CHECKED, "digest"),
    *((f"learning.split {kind}", ENOUGH, "min_samples") for kind in ("dirichlet", "natural", "log-normal", "zipf")),
    ("learning.split label-limited", UNUSED, "exponent"),
    *((f"learning.task {kind}", JUDGE, "metrics") for kind in TASKS.builtin),
    ("learning.task.metrics top-k", JUDGE, "k"),
    ("privacy", SEND, "budget mechanism where"),
    ("privacy", COMPOSED, "composition amplification"),
    ("privacy", WHO, "side_information label_histograms least_epsilon"),
    ("rounds", WHO, "count minimum_updates refuse_nonfinite_updates faults until_s target_accuracy target"),
    ("rounds", STEP, "policy late weights"),
    ("rounds", MERGE, "edges"),
    ("rounds", TIMES, "secure_aggregation effects"),
    ("rounds.policy fedasync", STEP, "staleness max_staleness mixing"),
    ("rounds.policy fedbuff", STEP, "staleness max_staleness buffer server_rate"),
    ("rounds.policy pisces", STEP, "staleness max_staleness"),
    ("rounds.policy safa", STEP, "share lag"),
    ("rounds.late partial", WHO, "least_work"),
    ("rounds.late stale", STEP, "weight max_staleness"),
    ("rounds.edges", MERGE, "grouping merging server"),
    ("rounds.edges", WHO, "rounds"),
    ("rounds.edges", TIMES, "backhaul"),
    ("rounds.edges.merging synchronous", WHO, "absent"),
    ("selector fedsampling", ANSWERS, "threshold alpha clip query anonymous"),
    ("selector fedsampling", UNUSED, "epsilon"),
    ("selector fedsampling", DRAWS, "samples"),
    ("selector fixed-ratio", DRAWS, "ratio"),
]

MOVES: Final[dict[tuple[str, str], Moves]] = {
    (part, name): moves for part, moves, names in ROWS for name in names.split()
}
"""What moves, by the place of a part and the name of its field."""


def moves_of(part: str, name: str) -> Moves | None:
    """Return what must move with a field; None where neither a row nor a table says it."""
    path = part.partition(" ")[0].split(".")
    tables = [".".join(path[:length]) for length in range(len(path), 0, -1)]
    return MOVES.get((part, name)) or next((BELOW[table] for table in tables if table in BELOW), None)

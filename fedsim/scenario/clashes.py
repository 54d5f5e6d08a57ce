"""What a part excludes: one rule over facts, which are names of what parts are, and the sentences of its refusals."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from fedsim.identity import parts_of
from fedsim.learning import AGGREGATIONS, COMPRESSORS, LOCAL_ALGORITHMS, Supervised
from fedsim.rounds import GROUPINGS, LATE, POLICIES, AsynchronousPolicy, LateRule
from fedsim.rounds.aggregation.staleness import STALENESS
from fedsim.rounds.aggregation.weightings import WEIGHTINGS
from fedsim.rounds.policies.late import Stale
from fedsim.rounds.policies.safa import Safa
from fedsim.scenario.private_parts import Problem
from fedsim.scenario.sections import ScenarioTables
from fedsim.selectors import SelectorPort
from fedsim.selectors.adapter import draws_samples

_SEEN: Final = ("update", "update_norm", "noise_energy")


class _Fact(NamedTuple):
    """What a part is, and where it stands."""

    name: str
    path: tuple[str, ...]
    value: object
    said: str = ""


_SECURE, _NOISE, _DRAWS, _POLICY, _SAFA = "secure aggregation", "noise of the server", "draws", "policy", "safa"
_SEVERAL: Final = (
    "masks cancel in the sum of one cohort's updates (rounds.secure_aggregation), and this policy adds up updates of "
    "several; allowed: a policy of one cohort a round"
)
_AT_THE_END: Final = (
    "{by} draw samples in each round, and updates are added up at its end; allowed: a synchronous policy without a "
    "rule of its own"
)
_NO_STATE: Final = "{by} draw samples in each round; allowed: an algorithm whose server keeps no state, without widths"
_LAWS: Final = "its weights depend on what updates are, and privacy.where is 'server'; allowed: any other law"
_CLASHES: Final = {
    (_POLICY, "other weights"): "the policy {by} has weights of its own; allowed: leave it out",
    (_POLICY, "late rule"): "the policy {by} has a rule of its own for late updates; allowed: leave it out",
    (_SAFA, "widths"): (
        "clients train parts of the model, and the policy is 'safa': its average is that of whole models; allowed: any "
        "other policy, or an algorithm without widths"
    ),
    (_DRAWS, "concurrent"): _AT_THE_END,
    (_DRAWS, "own sum"): _AT_THE_END,
    (_DRAWS, "partial work"): (
        "{by} draw samples in each round and work on all of them; allowed: 'cancel' or a rule for stale updates"
    ),
    (_DRAWS, "edges beside privacy"): (
        "edge servers ask for numbers of samples on their own account; allowed: none beside [privacy]"
    ),
    (_DRAWS, "server's state"): _NO_STATE,
    (_DRAWS, "widths"): _NO_STATE,
    (_NOISE, "each update"): (
        "the noise of a server is that of a sum of updates (privacy.where = 'server'); allowed: 'mean'"
    ),
    (_NOISE, "compression"): (
        "a compressed update may be longer than the clipped one, whose length the noise of the server stands for "
        "(privacy.where = 'server'); allowed: 'none'"
    ),
    (_NOISE, "other messages"): (
        "its clients do not send updates of the whole model, and privacy.where is 'server'; allowed: an algorithm "
        "whose clients do"
    ),
    (_NOISE, "own weights"): (
        "its clients have weights of their own, and privacy.where is 'server'; allowed: an algorithm whose clients "
        "have those of their samples"
    ),
    (_NOISE, "seen updates"): (
        "it measures updates ({said}), which reach the server without noise (privacy.where = 'server'), so that its "
        "choices leak; allowed: a selector that does not"
    ),
    (_NOISE, "weights of updates"): _LAWS,
    (_SECURE, "concurrent"): _SEVERAL,
    (_SECURE, "overlap"): _SEVERAL,
    (_SECURE, "own sum"): _SEVERAL,
    (_SECURE, "late updates"): (
        "masks cancel in the sum of one cohort's updates (rounds.secure_aggregation), and this rule adds late ones to "
        "it; allowed: 'cancel', 'drop' or 'partial'"
    ),
    (_SECURE, "each update"): (
        "it needs each update by itself, and rounds.secure_aggregation hides all but the sum; allowed: 'mean'"
    ),
    (_SECURE, "compression"): (
        "a masked update has a number for each of the model's (rounds.secure_aggregation); allowed: 'none'"
    ),
    (_SECURE, "other messages"): (
        "its clients do not send updates of the whole model alone, which rounds.secure_aggregation adds up; allowed: "
        "an algorithm whose clients do"
    ),
    (_SECURE, "looked at"): "rounds.secure_aggregation hides each update; allowed: false",
    (_SECURE, "measured updates"): (
        "it measures each update ({said}), and rounds.secure_aggregation hides all but the sum; allowed: a selector "
        "that does not"
    ),
}
"""Who excludes which fact, and what is said then."""


def clashes(tables: ScenarioTables) -> Iterator[Problem]:
    """Yield what a part is that another part excludes."""
    excluders, facts, said = dict(_excluders(tables)), list(_facts(tables)), set[tuple[object, str]]()
    for (excluder, name), message in _CLASHES.items():
        for fact in facts:
            if fact.name != name or excluder not in excluders or (fact.path, message) in said:
                continue
            said.add((fact.path, message))
            yield fact.path, fact.value, message.format(by=excluders[excluder], said=fact.said)
    parts = dict(parts_of(tables))
    for path, part in parts.items():
        for name in sorted(part.excludes):
            for other, provider in parts.items():
                if other != path and name in provider.provides:
                    message = f"it provides {name!r}, which {path} excludes; allowed: a part that does not"
                    yield tuple(other.split(".")), type(provider).__name__, message


def _excluders(tables: ScenarioTables) -> Iterator[tuple[str, str]]:
    """Yield the parts that exclude something, with their names in messages."""
    rounds, selector, privacy = tables.rounds, tables.selector, tables.privacy
    if rounds.policy.has_own_aggregation:
        yield _POLICY, repr(POLICIES.kind_of(rounds.policy))
    if isinstance(rounds.policy, Safa):
        yield _SAFA, "safa"
    if draws_samples(selector.stands_for):
        yield _DRAWS, f"clients of the selector {selector.kind!r}"
    if privacy is not None and privacy.where == "server":
        yield _NOISE, "privacy"
    if rounds.secure_aggregation is not None:
        yield _SECURE, "rounds.secure_aggregation"


def _facts(tables: ScenarioTables) -> Iterator[_Fact]:
    """Yield what the parts of a scenario are, as far as another one excludes it."""
    rounds, traits = tables.rounds, tables.rounds.policy.traits
    policy = ("rounds", "policy"), POLICIES.kind_of(rounds.policy)
    late = ("rounds", "late"), LATE.kind_of(rounds.late)
    weights = ("rounds", "weights"), WEIGHTINGS.kind_of(rounds.weights)
    stated = {
        _Fact("concurrent", *policy): traits.concurrency is not None,
        _Fact("overlap", *policy): traits.overlaps_rounds,
        _Fact("own sum", *policy): rounds.policy.has_own_aggregation,
        _Fact("other weights", *weights): weights[1] != "samples",
        _Fact("late rule", *late): late[1] != "cancel",
        _Fact("late updates", *late): type(rounds.late).aggregation is not LateRule.aggregation,
        _Fact("partial work", *late): rounds.late.least_share < 1,
        _Fact("looked at", ("rounds", "refuse_nonfinite_updates"), True): rounds.refuse_nonfinite_updates,
    }
    yield from (fact for fact, holds in stated.items() if holds)
    if rounds.edges is not None and tables.privacy is not None:
        yield _Fact("edges beside privacy", ("rounds", "edges"), GROUPINGS.kind_of(rounds.edges.grouping))
    if isinstance(rounds.policy, AsynchronousPolicy) and (law := rounds.policy.staleness).uses_deviation:
        yield _Fact("weights of updates", ("rounds", "policy", "staleness"), STALENESS.kind_of(law))
    if isinstance(rounds.late, Stale) and (law := rounds.late.weight).uses_deviation:
        yield _Fact("weights of updates", ("rounds", "late", "weight"), STALENESS.kind_of(law))
    if isinstance(tables.learning, Supervised):
        yield from _facts_of_learning(tables.learning)
    # The needs of a selector are those of what it builds.
    if tables.privacy is not None or rounds.secure_aggregation is not None:
        needs = SelectorPort.of(tables.selector.build()).needs
        if seen := [need for need in needs if need in _SEEN]:
            yield _Fact("seen updates", ("selector",), tables.selector.kind, ", ".join(seen))
        if measured := [need for need in seen if need != "noise_energy"]:
            yield _Fact("measured updates", ("selector",), tables.selector.kind, ", ".join(measured))


def _facts_of_learning(learning: Supervised) -> Iterator[_Fact]:
    algorithm = learning.algorithm
    aggregation = ("learning", "aggregation"), AGGREGATIONS.kind_of(learning.aggregation)
    compression = ("learning", "compression"), COMPRESSORS.kind_of(learning.compression)
    local = ("learning", "algorithm"), LOCAL_ALGORITHMS.kind_of(algorithm)
    stated = {
        _Fact("each update", *aggregation): not learning.aggregation.adds_up,
        _Fact("compression", *compression): not learning.compression.lossless,
        _Fact("other messages", *local): algorithm.server_keeps or algorithm.changes_messages,
        _Fact("own weights", *local): algorithm.reweighs,
        _Fact("server's state", *local): algorithm.server_keeps,
        _Fact("widths", *local): len(algorithm.ratios) > 1,
    }
    yield from (fact for fact, holds in stated.items() if holds)

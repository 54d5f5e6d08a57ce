"""What secure aggregation needs of the other parts of a scenario."""

from collections.abc import Iterator
from typing import Final

from fedsim.learning import AGGREGATIONS, COMPRESSORS, LOCAL_ALGORITHMS, Supervised
from fedsim.rounds import LATE, POLICIES, LateRule
from fedsim.scenario.private_parts import Problem
from fedsim.scenario.sections import ScenarioTables
from fedsim.selectors import SelectorPort

_SEES_UPDATES: Final = ("update", "update_norm")


def secure_problems(tables: ScenarioTables) -> Iterator[Problem]:
    """Yield what needs a single update, or the sum of others than those of one cohort, with secure aggregation."""
    rounds, learning = tables.rounds, tables.learning
    if rounds.secure_aggregation is None:
        return
    traits = rounds.policy.traits
    if traits.concurrency is not None or traits.overlaps_rounds or rounds.policy.has_own_aggregation:
        yield (
            ("rounds", "policy"),
            POLICIES.kind_of(rounds.policy),
            "masks cancel in the sum of one cohort's updates (rounds.secure_aggregation), and this policy adds up "
            "updates of several; allowed: a policy of one cohort a round",
        )
    if type(rounds.late).aggregation is not LateRule.aggregation:
        yield (
            ("rounds", "late"),
            LATE.kind_of(rounds.late),
            "masks cancel in the sum of one cohort's updates (rounds.secure_aggregation), and this rule adds late ones "
            "to it; allowed: 'cancel', 'drop' or 'partial'",
        )
    if rounds.refuse_nonfinite_updates:
        yield (
            ("rounds", "refuse_nonfinite_updates"),
            True,
            "rounds.secure_aggregation hides each update; allowed: false",
        )
    if isinstance(learning, Supervised):
        if not learning.aggregation.adds_up:
            yield (
                ("learning", "aggregation"),
                AGGREGATIONS.kind_of(learning.aggregation),
                "it needs each update by itself, and rounds.secure_aggregation hides all but the sum; allowed: 'mean'",
            )
        if not learning.compression.lossless:
            yield (
                ("learning", "compression"),
                COMPRESSORS.kind_of(learning.compression),
                "a masked update has a number for each of the model's (rounds.secure_aggregation); allowed: 'none'",
            )
        if learning.algorithm.server_keeps or learning.algorithm.changes_messages:
            yield (
                ("learning", "algorithm"),
                LOCAL_ALGORITHMS.kind_of(learning.algorithm),
                "its clients do not send updates of the whole model alone, which rounds.secure_aggregation adds up; "
                "allowed: an algorithm whose clients do",
            )
    seen = [need for need in SelectorPort.of(tables.selector.build()).needs if need in _SEES_UPDATES]
    if seen:
        yield (
            ("selector",),
            tables.selector.kind,
            f"it measures each update ({', '.join(seen)}), and rounds.secure_aggregation hides all but the sum; "
            "allowed: a selector that does not",
        )

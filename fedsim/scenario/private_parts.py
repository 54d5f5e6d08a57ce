"""What central privacy, composition and amplification need of the other parts of a scenario."""

from collections.abc import Iterator

from fedsim.foreign import Stateful
from fedsim.privacy import (
    COMPOSITIONS,
    MECHANISMS,
    CalibratedNoise,
    L2ClippedGaussian,
    Privacy,
    PrivacyLoss,
    Renyi,
)
from fedsim.rounds import LATE, POLICIES, AsynchronousPolicy
from fedsim.rounds.aggregation.weightings import WEIGHTINGS
from fedsim.scenario.sections import ScenarioTables
from fedsim.selectors import SelectorPort

Problem = tuple[tuple[str, ...], object, str]
"""Path of a field, its value, and what is wrong and what is allowed."""

_RARE = 0.01
"""Share of delta below which the chance of a round without clients must be."""


def sampling_rate(tables: ScenarioTables) -> float | None:
    """Return the probability with which each client is drawn, where amplification is counted; None elsewhere."""
    if tables.privacy is None or tables.privacy.amplification == "none":
        return None
    return _rate(tables.selector)


def private_problems(tables: ScenarioTables) -> Iterator[Problem]:
    """Yield what does not go together with the table of privacy."""
    privacy = tables.privacy
    if privacy is None:
        return
    if isinstance(privacy.composition, Renyi | PrivacyLoss) and not isinstance(privacy.mechanism, L2ClippedGaussian):
        kind = COMPOSITIONS.kind_of(privacy.composition)
        yield (
            ("privacy", "composition"),
            kind,
            f"it composes normal noise, and privacy.mechanism = {_mechanism(privacy)!r} has other; allowed: the "
            "mechanism 'gaussian', or leave the composition out for the sum of epsilons",
        )
    if privacy.where == "server":
        yield from _about_noise_at_server(privacy)
        yield from _about_weights(tables)
    if privacy.amplification == "poisson":
        yield from _about_sampling(tables, privacy)


def _mechanism(privacy: Privacy) -> str:
    return MECHANISMS.kind_of(privacy.mechanism)


def _about_noise_at_server(privacy: Privacy) -> Iterator[Problem]:
    """Yield what makes an aggregate depend on a client by more than its clipped update times its weight."""
    if not isinstance(privacy.mechanism, CalibratedNoise):
        yield (
            ("privacy", "mechanism"),
            _mechanism(privacy),
            "it does not state its clipping and its noise, and privacy.where is 'server'; allowed: a mechanism with "
            "clipped, clipping_norm, sensitivity, delta, scale and noise",
        )


def _about_weights(tables: ScenarioTables) -> Iterator[Problem]:
    """Yield weights that depend on data: on numbers of samples, or on what updates are."""
    rounds, policy = tables.rounds, POLICIES.kind_of(tables.rounds.policy)
    info = SelectorPort.of(tables.selector.build())
    if rounds.policy.has_own_aggregation:
        if not isinstance(rounds.policy, AsynchronousPolicy):
            yield (
                ("rounds", "policy"),
                policy,
                "its weights depend on clients' data, or it uses an update several times, and privacy.where is "
                "'server'; allowed: 'fedasync', 'fedbuff', or a policy of one cohort a round",
            )
    elif info.asks_sizes and info.draws_samples:
        yield (
            ("selector",),
            tables.selector.kind,
            "its updates count by the samples that clients draw, and the noise of a server (privacy.where = 'server') "
            "is for weights that do not depend on clients' data; allowed: privacy.where = 'client', or a selector of "
            "clients",
        )
    elif WEIGHTINGS.kind_of(rounds.weights) != "uniform" and _rate(tables.selector) is None:
        yield (
            ("rounds", "weights"),
            WEIGHTINGS.kind_of(rounds.weights),
            "the noise of a server (privacy.where = 'server') is for weights that do not depend on clients' data; "
            "allowed: 'uniform', or 'sum' with the selector 'poisson'; selectors that prescribe weights go with "
            "privacy.where = 'client' alone",
        )
    elif _rate(tables.selector) is not None and WEIGHTINGS.kind_of(rounds.weights) != "sum":
        yield (
            ("rounds", "weights"),
            WEIGHTINGS.kind_of(rounds.weights),
            "the selector 'poisson' prescribes weights with a fixed denominator; allowed: 'sum', which uses them as "
            "they are",
        )


def _about_sampling(tables: ScenarioTables, privacy: Privacy) -> Iterator[Problem]:
    """Yield what makes a client's part in a release other than a secret draw by itself with a known probability."""
    here, rounds = ("privacy", "amplification"), tables.rounds
    rate = _rate(tables.selector)
    if privacy.where != "server" or privacy.composition is None:
        yield here, "poisson", "it needs where = 'server' and a composition; allowed: 'none', or both of them"
        return
    if rate is None:
        yield (
            here,
            "poisson",
            f"selector = {tables.selector.kind!r} does not draw each client by itself; a cohort of a fixed size is "
            "amplified under another neighbourhood than that of the noise; allowed: 'none', or the selector 'poisson'",
        )
        return
    traits = rounds.policy.traits
    if rounds.edges is not None or traits.concurrency is not None or traits.overlaps_rounds or not rounds.late.cancels:
        yield (
            here,
            "poisson",
            f"rounds of this server share clients (rounds.policy = {POLICIES.kind_of(rounds.policy)!r}, rounds.late = "
            f"{LATE.kind_of(rounds.late)!r}); allowed: 'none', or one synchronous server with rounds.late = 'cancel'",
        )
    elif traits.cohort_size is not None or POLICIES.kind_of(rounds.policy) not in ("wait-for-all", "deadline"):
        yield (
            here,
            "poisson",
            f"rounds.policy = {POLICIES.kind_of(rounds.policy)!r} takes clients by the arrivals of others; allowed: "
            "'none', or the policy 'wait-for-all' or 'deadline'",
        )
    empty, delta = rounds.count * (1.0 - rate) ** tables.crowd.clients, privacy.composition.delta
    if not empty <= _RARE * delta:
        yield (
            here,
            "poisson",
            f"a round without clients has a chance of {empty:.2g} in this run, which delta = {delta:g} does not cover; "
            f"allowed: a rate and a crowd with a chance of at most {_RARE * delta:.2g}",
        )


def _rate(selector: Stateful) -> float | None:
    """Return the rate of the selector ``poisson``; None for any other."""
    rate = selector.options.get("rate") if selector.kind == "poisson" else None
    return None if rate is None else float(rate)

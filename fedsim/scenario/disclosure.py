"""What a scenario lets clients disclose beside their updates."""

from typing import Literal

from fedsim.privacy import CoordinateClampLaplace, Privacy
from fedsim.scenario.scenario import Scenario
from fedsim.selectors import SelectorInfo, SelectorPort


def side_information_of(scenario: Scenario) -> Literal["none", "private", "exact"]:
    """Return what protects what clients tell beside updates; ``"none"`` if they tell nothing."""
    selector, privacy = SelectorPort.of(scenario.selector.build()), scenario.privacy
    if not selector.leaks:
        return "none"
    if privacy is None:
        sizes_alone = not selector.numbers and not selector.uses_labels
        return "private" if sizes_alone and selector.sizes_cost else "exact"
    return "exact" if _told_as_they_are(selector, privacy) else "private"


def remarks_of(scenario: Scenario) -> tuple[str, ...]:
    """Return sentences on what a scenario leaves without privacy, or without an account; none if there is nothing."""
    recipe, privacy = scenario.selector, scenario.privacy
    if privacy is None and not SelectorInfo.of(recipe.found).asks_sizes:
        return ()
    selector = SelectorPort.of(recipe.build())
    if privacy is None:
        return _sizes_not_counted(selector)
    told = []
    if privacy.where == "server":
        told.append(
            "privacy is that of the models: clients' updates reach the server clipped and without noise (privacy.where "
            "= 'server')"
        )
    if isinstance(privacy.mechanism, CoordinateClampLaplace):
        told.append(
            "leakage is per coordinate (privacy.mechanism = 'laplace-coordinate'); the whole update of d numbers leaks "
            "up to d times this"
        )
    if numbers := ", ".join(_told_as_they_are(selector, privacy)):
        told.append(
            f"side information not private: clients send numbers as they are ({numbers}), and these leak without "
            "bound; the leakage that is stated counts updates only"
        )
    return tuple(told)


def _sizes_not_counted(selector: SelectorInfo) -> tuple[str, ...]:
    """Return a sentence on the epsilon of answers about numbers of samples that no account counts."""
    if not selector.asks_sizes or not selector.sizes_cost:
        return ()
    each = "all of a client together cost" if selector.sizes_paid_once else "each costs"
    return (
        f"clients' answers about their numbers of samples are randomised: {each} {selector.sizes_cost:g} epsilon, "
        "which no account counts in a run without privacy",
    )


def _told_as_they_are(selector: SelectorInfo, privacy: Privacy) -> tuple[str, ...]:
    """Return the names of what clients tell beside updates without noise, in a run with privacy."""
    told = () if privacy.side_information.share else selector.numbers
    if selector.uses_labels and not privacy.label_histograms.cost(privacy.budget.total):
        told = (*told, "shares of labels")
    if selector.asks_sizes and not selector.sizes_cost:
        told = (*told, "numbers of samples")
    return told

"""What a scenario lets clients disclose beside their updates."""

from typing import Literal

from fedsim.privacy import Privacy
from fedsim.scenario.scenario import Scenario
from fedsim.selectors import SelectorInfo, SelectorPort


def side_information_of(scenario: Scenario) -> Literal["none", "private", "exact"]:
    """Return what protects the numbers that clients send beside updates; ``"none"`` if they send none.

    They are ``"exact"`` without privacy, and with privacy if the scenario says so.
    """
    selector, privacy = SelectorPort.of(scenario.selector.build()), scenario.privacy
    if not selector.leaks:
        return "none"
    return "exact" if privacy is None or _told_as_they_are(selector, privacy) else "private"


def remarks_of(scenario: Scenario) -> tuple[str, ...]:
    """Return sentences on what a scenario with privacy leaves without it; none if there is nothing."""
    if scenario.privacy is None:
        return ()
    numbers = ", ".join(_told_as_they_are(SelectorPort.of(scenario.selector.build()), scenario.privacy))
    central = (
        "privacy is that of the models: clients' updates reach the server clipped and without noise (privacy.where = "
        "'server')",
    )
    told = central if scenario.privacy.where == "server" else ()
    if not numbers:
        return told
    return (
        *told,
        f"side information not private: clients send numbers as they are ({numbers}), and these leak without bound; "
        "the leakage that is stated counts updates only",
    )


def _told_as_they_are(selector: SelectorInfo, privacy: Privacy) -> tuple[str, ...]:
    """Return the names of what clients tell beside updates without noise, in a run with privacy."""
    told = () if privacy.side_information.share else selector.numbers
    if selector.uses_labels and not privacy.label_histograms.cost(privacy.budget.total):
        told = (*told, "shares of labels")
    if selector.asks_sizes and not selector.sizes_cost:
        told = (*told, "numbers of samples")
    return told

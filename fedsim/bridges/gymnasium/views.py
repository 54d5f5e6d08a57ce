"""Selectors of runs that are stepped from outside: what they state decides which columns their views have."""

from fedsim.selectors.baselines import Uniform


class Plain(Uniform):
    """A view with the columns that every selector has."""


class WithLosses(Uniform):
    """A view with the training losses of last updates too; each is a number up per update."""

    needs = ("loss",)
    communication = "a number up per update"


class WithFeatures(Uniform):
    """A view with the expected seconds of downlink, work and uplink too, which clients declare once."""

    uses_features = True
    communication = "three numbers up per client once"


class WithBoth(Uniform):
    """A view with losses and with expected seconds."""

    needs = ("loss",)
    uses_features = True
    communication = "a number up per update, and three numbers up per client once"


def selector_of(losses: bool, features: bool) -> str:
    """Return the name by which a scenario finds the selector of a view."""
    found = {(False, False): Plain, (True, False): WithLosses, (False, True): WithFeatures, (True, True): WithBoth}
    chosen = found[losses, features]
    return f"{chosen.__module__}:{chosen.__name__}"

"""Why no client can be selected any more."""

import numpy as np

from fedsim.errors import ScenarioError
from fedsim.rounds.server.context import ServerContext


def refusal_to_start(context: ServerContext, start_s: float) -> ScenarioError:
    """Return the error about a run whose first client could be selected too late."""
    if spent := _why_spent(context):
        return ScenarioError(f"privacy: no round can start; {spent}; allowed: a budget that pays for an update")
    return ScenarioError(
        f"devices: no round can start; the first client is available, and charged enough, after {start_s} s; allowed: "
        "availability and energy that let one take part before rounds.until_s"
    )


def why_nobody(context: ServerContext, time_s: float) -> str:
    """Return why no client will be selected from an instant on."""
    batteries = context.batteries
    if spent := _why_spent(context):
        return spent
    if batteries is not None:
        everyone = np.arange(batteries.clients)
        if (batteries.charge_j(everyone, time_s) < batteries.least_j).all():
            least_j = np.max(batteries.least_j)
            return f"all {batteries.clients} batteries are below {least_j:.6g} J, the least charge, for good"
    return "no client will ever be available again"


def _why_spent(context: ServerContext) -> str:
    """Return why no client can be selected for its privacy account; empty while one can."""
    accountant = context.accountant
    if accountant is None or len(accountant.closed) < accountant.spent.size:
        return ""
    return accountant.why_closed

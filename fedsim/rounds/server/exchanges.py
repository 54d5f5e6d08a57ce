"""The effects of one server that exchange messages beside participations."""

from fedsim.rounds.effects.contract import Effects
from fedsim.rounds.secure.exchange import SecureExchange
from fedsim.rounds.server.context import ServerContext
from fedsim.rounds.server.questions import Questions


def exchanges_of(context: ServerContext, effects: Effects) -> Effects:
    """Return those of the run, then the selector's questions and the steps of secure aggregation."""
    own = [Questions(context)] if context.selector.probe is not None else []
    return Effects([*effects, *own, *([] if context.secure is None else [SecureExchange(context.secure)])])

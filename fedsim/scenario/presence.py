"""Vehicles that come and go: presence in floating car data is availability, unless the scenario states one."""

from typing import Protocol, runtime_checkable

from fedsim.devices import Always
from fedsim.errors import ScenarioError
from fedsim.inputs.tables import note
from fedsim.inputs.tables.content import is_car_data
from fedsim.network.topology.mobility import Trace
from fedsim.scenario.scenario import Scenario


@runtime_checkable
class _Moves(Protocol):
    """A network whose clients move, as a graph's do; to import it takes a tenth of a second."""

    mobility: object


def with_presence(scenario: Scenario) -> Scenario:
    """Return the scenario with the availability that its floating car data state, if any do."""
    trace = scenario.network.mobility if isinstance(scenario.network, _Moves) else None
    if not isinstance(trace, Trace) or trace.path is None or trace.after == "repeat":
        return scenario
    where = f"network.mobility.path: {trace.path}"
    if not isinstance(scenario.devices.availability, Always) or not is_car_data(trace.path, where):
        return scenario
    note(
        where,
        "clients are available while they are in the trace, as devices.availability states nothing else; those that "
        "are there at its end stay",
    )
    presence = {"kind": "traces", "path": trace.path, "after": "hold", "mapping": "id", "origin": trace.origin}
    stated = {name: one for name, one in presence.items() if one is not None}
    try:
        return scenario.replace({"devices.availability": stated})
    except ScenarioError as error:
        raise ScenarioError(f"{error}; clients come and go as the vehicles of network.mobility.path do") from None

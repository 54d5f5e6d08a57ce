"""The tables that a scenario names, read as its run would read them, and whether its data set is there."""

from fedsim.identity import parts_of, user_code
from fedsim.inputs.tables import reading
from fedsim.learning.data.in_files import InFiles
from fedsim.learning.data.partitions.natural import FilePartition
from fedsim.network.contracts import build_links
from fedsim.run_setup import RunSetup
from fedsim.scenario.file_digests import files_of
from fedsim.scenario.presence import with_presence
from fedsim.scenario.scenario import Scenario
from fedsim.streams import Streams


def read_tables(scenario: Scenario) -> tuple[str, ...]:
    """Read the tables of fedsim's own parts in the order of a run; return the notes on rows that are not used."""
    streams, clients = Streams(scenario.seed), scenario.crowd.clients
    with reading() as read:
        scenario = with_presence(scenario)
        for _, part in parts_of(scenario.learning):
            if isinstance(part, FilePartition):
                part.owners(clients)
            elif isinstance(part, InFiles) and (lacking := part.lacking()):
                read.notes.append(f"learning.data: {lacking}")
        devices, network = scenario.devices, scenario.network
        if _reads(network) or _reads(scenario.crowd.placement):
            positions_m = scenario.crowd.placement.positions(clients, streams)
            if _reads(network):
                build_links(network, RunSetup.at(positions_m, streams))
        for law in (devices.compute, devices.energy, devices.availability):
            if _reads(law):
                law.build(RunSetup(clients, streams, flops_per_sample=1.0))
    return tuple(read.notes)


def _reads(part: object) -> bool:
    return any(files_of(part)) and not user_code(part)

"""Bands, powers and clocks that a selector gives to the clients of its cohort."""

from fedsim.rounds.effects.contract import BesidePhases
from fedsim.rounds.plan import Plan
from fedsim.rounds.run import Run


class Allocation(BesidePhases):
    """Clients work and send with what the selector has given them; else with what the scenario has."""

    def begin(self, run: Run) -> None:
        self._links = run.links

    def plan(self, plan: Plan) -> None:
        given = None if plan.cohort is None else plan.cohort.allocation
        if given is None:
            return
        if given.cpu_frequency is not None:
            plan.compute_s = plan.compute_s / given.cpu_frequency
        if given.bandwidth_hz is not None or given.transmit_power_dbm is not None:
            plan.links = self._links.allocated(plan.client, given.bandwidth_hz, given.transmit_power_dbm)
        plan.cpu_frequency, plan.transmit_power_dbm = given.cpu_frequency, given.transmit_power_dbm

"""The frozen description of one experiment."""

from fedsim.scenario.description import Crowd, Results, Rounds, Scenario
from fedsim.scenario.overrides import parse_assignment

__all__ = ["Crowd", "Results", "Rounds", "Scenario", "parse_assignment"]

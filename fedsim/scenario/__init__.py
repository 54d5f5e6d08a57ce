"""The description of one experiment: a frozen value, the same in TOML and in Python."""

from fedsim.scenario.overrides import parse_assignment
from fedsim.scenario.scenario import Scenario
from fedsim.scenario.sections import Crowd, Results, Rounds

__all__ = ["Crowd", "Results", "Rounds", "Scenario", "parse_assignment"]

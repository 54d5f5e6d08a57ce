"""The description of one experiment: a frozen value, the same in TOML and in Python."""

from fedsim.scenario.overrides import parse_assignment as parse_assignment
from fedsim.scenario.scenario import Scenario as Scenario
from fedsim.scenario.sections import Crowd as Crowd, Results as Results, Rounds as Rounds

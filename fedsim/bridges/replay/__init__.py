"""Transfers of a finished run, written as files that another network simulator replays."""

from fedsim.bridges.replay.files import write_replay as write_replay
from fedsim.bridges.replay.flows import Flows as Flows, flows_of as flows_of
from fedsim.bridges.replay.steady import (
    Capacity as Capacity,
    SteadyGraph as SteadyGraph,
    Way as Way,
    steady_graph as steady_graph,
)

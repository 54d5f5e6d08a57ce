"""Transfers of a finished run, written as files that another network simulator replays."""

from fedsim.bridges.replay.files import write_replay
from fedsim.bridges.replay.flows import Flows, flows_of
from fedsim.bridges.replay.steady import Capacity, SteadyGraph, Way, steady_graph

__all__ = ["Capacity", "Flows", "SteadyGraph", "Way", "flows_of", "steady_graph", "write_replay"]

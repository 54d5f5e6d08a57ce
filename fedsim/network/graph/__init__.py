"""The network of a graph: settings that compose a topology, access links, mobility and failures."""

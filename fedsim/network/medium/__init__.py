"""Shared media on the simulated clock: spectrum, multicast, fluid flows, association and failures."""

"""TiFL (Chai et al., HPDC 2020): cohorts from tiers of similar latency."""
